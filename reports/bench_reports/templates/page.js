// The page: its state, kept in the address, and its events.
const root = document.documentElement;
const $ = (id) => document.getElementById(id);

/** What is there with a script alone: controls, buttons in headings, colours and marks of learners in tables. */
function prepare(data) {
  for (const hidden of document.querySelectorAll(".scripted")) hidden.hidden = false;
  for (const name of document.querySelectorAll(".at-answer tr[data-l] th")) {
    const { css, mark } = look(data, Number(name.parentElement.dataset.l));
    name.dataset.file = name.textContent;
    name.insertAdjacentHTML("afterbegin", `<span class="t ${css}" aria-hidden="true">${mark}</span> `);
  }
}

function start(data) {
  const drawn = (s) => data.sets[s].views.length > 0; // others show their failures alone, always
  if (!data.sets.some((one) => one.views.length)) return;
  prepare(data);
  const state = { set: 0, metric: "", kind: "", budget: null, hidden: new Set(), linear: false,
    whole: false, bands: false, point: null };
  const section = () => $(`set${state.set}`);
  const set = () => data.sets[state.set];
  const viewIn = (one) => one.views.find((v) => v.metric === state.metric && v.kind === state.kind)
    ?? one.views.find((v) => v.kind === state.kind) ?? one.views[0];
  const view = () => viewIn(set());
  const numbers = [...data.sets.keys()];
  /** The data sets that are shown, one of each data: under the accounting chosen, if it was measured there. */
  const sets = () => numbers.filter((s) => {
    const same = data.sets.filter((other) => other.data === data.sets[s].data);
    return data.sets[s] === (same.find((other) => other.accounting === set().accounting) ?? same[0]);
  });
  /** The place of the budget that was chosen, at first that of the answer, or the largest cap. */
  function placeNow() {
    if (view() === set().views[0] && state.budget === null) return set().opens;
    const usual = view().kind === "cap" ? Infinity : amount(set().views[0], set().opens);
    return Math.max(placeAt(view(), state.budget ?? usual), 0);
  }
  const here = () => ranking(data, view(), placeNow());
  let ax = null;
  const address = addressOf(data, { state, set, view });

  // the choices above
  const option = (value, text) => `<option value="${esc(value)}">${esc(text)}</option>`;
  const KINDS = { mean: "mean per row", cap: "every row" };
  function fill() {
    const choices = (id, values, words, chosen, least = 1) => {
      $(id).innerHTML = values.map((value) => option(value, words(value))).join("");
      $(id).value = chosen;
      $(id).closest("label").hidden = values.length < least;
    };
    choices("f-set", sets().filter(drawn), (s) => data.sets[s].data, state.set, 2);
    const same = numbers.filter((s) => data.sets[s].data === set().data);
    choices("f-accounting", same, (s) => data.sets[s].accounting, state.set, 2);
    const metrics = [...new Set(set().views.map((v) => v.metric))];
    if (!metrics.includes(state.metric)) state.metric = metrics[0];
    choices("f-metric", metrics, (m) => m, state.metric);
    const kinds = [...new Set(set().views.filter((v) => v.metric === state.metric).map((v) => v.kind))];
    if (!kinds.includes(state.kind)) state.kind = kinds[0];
    choices("f-kind", kinds, (k) => KINDS[k], state.kind, 2);
    $("f-budget").max = view().at.length - (view().kind === "cap" ? 1 : 0);
    $("f-budget").value = placeNow();
    $("f-scale").setAttribute("aria-pressed", state.linear);
    $("f-range").setAttribute("aria-pressed", state.whole);
    $("f-bands").setAttribute("aria-pressed", state.bands);
    $("f-bands").hidden = !view().curves.some((c) => c.sure);
    document.querySelectorAll("section.set").forEach((s, i) => s.classList.toggle("off", drawn(i) && i !== state.set));
    const legend = section().querySelector(".legend");
    if (legend && legend.nextElementSibling !== $("tools")) legend.after($("tools"));
  }

  // the chart
  /** The learner that the sentence names. */
  const leader = () => (atAnswer(set(), view(), placeNow()) ? set().keeps?.from : null) ?? Math.max(view().leaders[placeNow()], 0);
  const leaders = () => new Set([leader(), data.learners.findIndex((l) => l[0] === set().reference)]); // whose bands are drawn

  let printed = false;
  function options() {
    const width = Math.max(320, Math.floor(section().querySelector(".chart").clientWidth || 760));
    const { hidden, linear, whole, bands } = state;
    return { width, hidden, linear, whole, bands, lead: leaders(), budget: amount(view(), placeNow()), ...(printed && { width: 720, plot: 150 }) };
  }

  function draw() {
    const made = chart(data, set(), view(), options());
    ax = made.ax;
    section().querySelector(".chart").innerHTML = made.svg;
    showPoint(state.point);
  }

  function drawLegend() {
    section().querySelector(".legend").innerHTML = view().curves.map((c) => {
      const kind = look(data, c.l);
      return `<button type="button" data-curve="${c.l}" aria-pressed="${!state.hidden.has(c.l)}"><span class="t ${kind.css}" aria-hidden="true">${kind.mark}</span> ${esc(data.learners[c.l][0])}</button>`;
    }).join("");
  }

  function nearest(event) {
    const svg = section().querySelector(".chart svg");
    const box = svg.getBoundingClientRect();
    const [x, y] = [(event.clientX - box.left) * ax.width / box.width, (event.clientY - box.top) * ax.height / box.height];
    let best = null;
    for (const c of view().curves) {
      if (state.hidden.has(c.l)) continue;
      c.x.forEach((b, i) => {
        const row = ax.down(c.y[i]);
        const far = Math.hypot(ax.across(b) - x, row - y);
        if (row < ax.margin.top || row > ax.bottom) return; // not drawn
        if (!best || far < best.far) best = { far, l: c.l, i };
      });
    }
    return best && best.far < 60 ? best : null;
  }

  function showPoint(point) {
    const curve = point && view().curves.find((c) => c.l === point.l);
    const spot = section().querySelector(".spot");
    state.point = curve ? { l: point.l, i: clamp(point.i, 0, curve.x.length - 1) } : null;
    if (!curve) return;
    const { i } = state.point;
    spot.setAttribute("cx", ax.across(curve.x[i]));
    spot.setAttribute("cy", clamp(ax.down(curve.y[i]), ax.margin.top, ax.bottom));
    const facts = [`${view().metric} <b>${quality(curve.y[i])}</b> ${curve.c ? `at cost <b>${cost(curve.c[i])}</b> ` : ""}on test`];
    if (curve.f) facts.push(`${Number(curve.f[i].toPrecision(3))} features`);
    facts.push(`from a budget of ${cost(curve.x[i])} on`);
    const setting = curve.s ? `<br>setting: <code>${esc(curve.s[i])}</code>` : "";
    section().querySelector(".panel").innerHTML = `<b>${esc(data.learners[curve.l][0])}</b>: ${facts.join(", ")}${setting}`;
  }

  function walk(event) {
    const move = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    if (!move) return;
    event.preventDefault();
    const shown = ranking(data, view(), view().at.length).map((r) => r.l).filter((l) => !state.hidden.has(l));
    const now = state.point ?? { l: shown[0], i: 0 };
    const at = clamp(shown.indexOf(now.l) + move[0], 0, shown.length - 1);
    showPoint({ l: shown[at], i: state.point ? now.i + move[1] : 0 });
  }

  // sentence and table: those of the board, or those at the budget
  function rerank() {
    const place = placeNow();
    const own = atAnswer(set(), view(), place);
    for (const part of section().querySelectorAll(".at-answer")) part.hidden = !own;
    for (const part of section().querySelectorAll(".within")) part.hidden = own;
    const table = section().querySelector(".within table");
    if (!own) {
      [table.tHead.innerHTML, table.tBodies[0].innerHTML] = tableHtml(data, view(), here());
      sortRows(table, table.dataset.sort ? JSON.parse(table.dataset.sort) : null);
      stack(table);
    }
    const told = section().querySelector(".story");
    told.textContent = story(data, set(), view(), place);
    told.hidden = !told.textContent;
    const [limit, unit] = [amount(view(), place), set().unit ? ` ${set().unit}` : ""];
    const kept = own && set().keeps;
    const text = kept ? `${cost(kept.cost)}${unit} (test)` : Number.isFinite(limit) ? `at most ${cost(limit)}${unit}` : "no limit";
    $("f-amount").textContent = text;
    $("f-budget").setAttribute("aria-valuetext", text);
  }

  const purchases = () => drawPurchases(section().querySelector(".bought"), data, set(), view(), amount(view(), placeNow()), leader());

  /** A small chart of each data set. */
  function strip() {
    if (!$("strip")) return;
    $("strip").innerHTML = sets().filter(drawn).map((i) => {
      const s = data.sets[i];
      const { svg } = chart(data, s, viewIn(s), { width: 132, mini: true, hidden: state.hidden });
      return `<button type="button" data-go="${i}" aria-pressed="${i === state.set}">${svg.replace(/ role="img" aria-label="[^"]*"/, ' aria-hidden="true"')}<span>${esc(s.data)}</span></button>`;
    }).join("");
  }

  /** Tables wider than their place say that they scroll. */
  function wide() {
    for (const box of document.querySelectorAll(".scroll")) box.classList.toggle("wide", box.scrollWidth > box.clientWidth + 1);
  }
  function all() {
    fill();
    draw();
    drawLegend();
    rerank();
    purchases();
    if (!state.point) section().querySelector(".panel").textContent = "Select a point to see its settings: hover over it, tap it, or use the arrow keys.";
    strip();
    wide();
    address.write();
  }

  /** All data sets where they open, or at the budget chosen, and all that is folded, for paper. */
  let folded = [];
  function allSets() {
    const kept = { ...state };
    if (!printed) folded = [...document.querySelectorAll("details:not([open])")];
    for (const part of folded) part.open = true;
    printed = true;
    for (const s of numbers.filter(drawn)) {
      Object.assign(state, kept, { set: s, budget: s === kept.set ? kept.budget : null });
      fill();
      draw();
      drawLegend();
      rerank();
      purchases();
    }
    Object.assign(state, kept);
    fill();
  }
  function onScreen() {
    printed = false;
    for (const part of folded) part.open = false;
    all();
  }
  window.addEventListener("beforeprint", allSets);
  window.addEventListener("afterprint", onScreen);
  matchMedia("print").addEventListener("change", (e) => (e.matches ? allSets() : onScreen()));

  // events
  function goTo(s) { // where the data set opens
    Object.assign(state, { set: s, point: null, budget: null });
  }
  for (const id of ["f-set", "f-accounting"]) {
    $(id).addEventListener("change", (e) => { goTo(Number(e.target.value)); all(); });
  }
  $("f-metric").addEventListener("change", (e) => { Object.assign(state, { metric: e.target.value, point: null }); all(); });
  $("f-kind").addEventListener("change", (e) => { Object.assign(state, { kind: e.target.value, point: null, budget: null }); all(); });
  $("f-budget").addEventListener("input", (e) => {
    const place = Number(e.target.value);
    state.budget = atAnswer(set(), view(), place) ? null : amount(view(), place);
    draw();
    rerank();
    purchases();
    address.writeSoon();
  });
  for (const [id, flag] of [["f-scale", "linear"], ["f-range", "whole"], ["f-bands", "bands"]]) {
    $(id).addEventListener("click", () => { state[flag] = !state[flag]; all(); });
  }
  $("f-reset").addEventListener("click", () => { history.replaceState(null, "", location.pathname + location.search); address.read(); all(); });

  function toggle(l, alone) {
    const every = view().curves.map((c) => c.l);
    if (alone) {
      const only = every.every((other) => state.hidden.has(other) === (other !== l));
      state.hidden = new Set(only ? [] : every.filter((other) => other !== l));
    } else if (!state.hidden.delete(l)) state.hidden.add(l);
    for (const button of section().querySelectorAll("[data-curve]")) button.setAttribute("aria-pressed", !state.hidden.has(Number(button.dataset.curve)));
    draw();
    strip();
    address.write();
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.curve) { // a second click soon after isolates, and undoes the first
      const twice = event.detail === 2;
      if (twice) state.hidden = new Set(state.before);
      else state.before = [...state.hidden];
      toggle(Number(button.dataset.curve), twice || event.shiftKey);
    } else if (button.dataset.go) { goTo(Number(button.dataset.go)); all(); }
    else if (button.dataset.save) save(button.dataset.save);
    else if (button.dataset.copy) copy(button);
  });

  for (const box of document.querySelectorAll(".chart")) {
    const move = (event) => { const point = nearest(event); if (point) showPoint(point); };
    box.addEventListener("pointermove", move);
    box.addEventListener("pointerdown", move);
    box.addEventListener("keydown", walk);
    box.tabIndex = 0;
  }
  const save = savingOf(data, { set, view, section }, options);
  window.addEventListener("hashchange", () => { address.read(); all(); });
  let width = innerWidth;
  window.addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; draw(); purchases(); wide(); } });
  address.read(); all();
}

$("theme").addEventListener("click", () => {
  const now = root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  root.dataset.theme = now === "dark" ? "light" : "dark";
});
start(JSON.parse($("data").textContent));
root.dataset.ready = "yes";
