// The state of the page in its address.

function addressOf(data, { state, set, view }) {
  const flags = { linear: "axis", whole: "range", bands: "bands" };
  let later = 0;
  // caps were asked for, but no sentence may contradict an answer above
  const usual = () => (!set().keeps?.saved && set().views.some((v) => v.kind === "cap") ? "cap" : "mean");
  function write() {
    clearTimeout(later); // from an earlier state
    const words = new URLSearchParams();
    const put = (name, value, usual) => { if (value !== usual) words.set(name, value); };
    put("data", set().name, data.sets[data.open].name);
    put("metric", view().metric, set().views[0].metric);
    put("kind", view().kind, usual());
    put("budget", state.budget === Infinity ? "all" : state.budget, null);
    put("hide", [...state.hidden].map((l) => data.learners[l][0]).join("\n"), "");
    for (const [flag, name] of Object.entries(flags)) put(name, state[flag] ? flag : "", "");
    const text = words.toString();
    if (text !== location.hash.slice(1)) history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
  }

  function read() {
    const words = new URLSearchParams(location.hash.slice(1));
    const known = (name) => data.learners.findIndex((l) => l[0] === name);
    const named = data.sets.findIndex((s) => s.name === words.get("data"));
    state.set = data.sets[named]?.views.length ? named : data.open;
    state.metric = words.get("metric") ?? set().views[0].metric;
    state.kind = words.get("kind") ?? usual();
    const budget = words.get("budget");
    state.budget = budget === "all" ? Infinity : budget > 0 ? Number(budget) : null;
    state.hidden = new Set((words.get("hide") ?? "").split("\n").map(known).filter((l) => l >= 0));
    for (const [flag, name] of Object.entries(flags)) state[flag] = words.has(name);
  }

  /** Soon: browsers limit how often an address may change. */
  function writeSoon() {
    clearTimeout(later);
    later = setTimeout(write, 150);
  }
  return { write, writeSoon, read };
}
