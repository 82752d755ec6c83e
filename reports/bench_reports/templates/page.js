// The page: its state, kept in the address, and its events.
const root = document.documentElement;
const $ = (id) => document.getElementById(id);

/** What is there with a script alone: controls, buttons in headings, colours and marks of learners in tables. */
function prepare(data) {
  for (const hidden of document.querySelectorAll(".scripted")) hidden.hidden = false;
  for (const head of document.querySelectorAll("th[data-first]")) head.innerHTML = `<button type="button">${head.innerHTML}</button>`;
  for (const name of document.querySelectorAll(".board tr[data-l] th")) {
    const { css, mark } = look(data, Number(name.parentElement.dataset.l));
    name.insertAdjacentHTML("afterbegin", `<span class="t ${css}" aria-hidden="true">${mark}</span> `);
  }
}

function start(data) {
  const drawn = (s) => data.sets[s].views.length > 0; // others show their failures alone, always
  if (!data.sets.some((one) => one.views.length)) return;
  prepare(data);
  const state = { set: 0, metric: "", kind: "mean", share: null, hidden: new Set(), linear: false,
    whole: false, bands: false, sort: null, point: null };
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
  /** The share of the reference's cost that was chosen, at first that of the answer. */
  const shareNow = () => state.share ?? shareAt(set().views[0], set().opens);
  const placeNow = () => Math.max(placeAt(view(), shareNow()), 0);
  const here = () => ranking(data, view(), placeNow());
  let ax = null;
  const shown = { state, numbers, set, view, viewIn, sets, shareNow, placeNow };
  const address = addressOf(data, shown);
  const overview = overviewOf(data, shown);

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
    choices("f-kind", kinds, (k) => KINDS[k], state.kind);
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
  function leaders() { // whose bands are drawn: the learner that is ahead, and the reference
    return new Set([here()[0].l, data.learners.findIndex((l) => l[0] === set().reference)]);
  }

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
        const far = Math.hypot(ax.across(b) - x, clamp(ax.down(c.y[i]), ax.margin.top, ax.bottom) - y);
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

  // the table
  function rerank() {
    const place = placeNow();
    const table = section().querySelector("table.board");
    const rows = [...table.tBodies[0].rows];
    const own = new Map(rows.filter((r) => r.dataset.l).map((r) => [Number(r.dataset.l), r]));
    // sources of a choice alone, and its oracle, are no learners
    for (const r of rows) if (!r.dataset.l) r.hidden = view().metric !== set().views[0].metric;
    const column = Object.fromEntries([...table.tHead.rows[0].cells].map((h, i) => [h.dataset.is, i]));
    const head = table.tHead.rows[0].cells[column.quality];
    head.querySelector("button").textContent = view().metric;
    head.dataset.first = view().higher ? "down" : "up";
    const put = (cells, name, text) => {
      const cell = cells[column[name]];
      if (cell && cell.textContent !== text) cell.textContent = text;
    };
    const order = ordered(set(), view(), place, here());
    let tier = 0;
    order.forEach((row, i) => {
      const tr = own.get(row.l);
      if (!tr) return;
      own.delete(row.l);
      put(tr.cells, "rank", rankText(row));
      put(tr.cells, "quality", quality(row.quality));
      put(tr.cells, "range", interval(row.low, row.high));
      put(tr.cells, "cost", `${cost(row.cost)}${row.over ? "!" : ""}`);
      put(tr.cells, "features", row.features === null || row.features === undefined ? "-" : brief(row.features));
      tr.classList.toggle("lead", row.tier === 1 || (!row.tier && row.position === 1));
      tr.classList.toggle("edge", i > 0 && !row.baseline && row.tier > tier && tier > 0);
      tr.classList.toggle("none", row.at < 0);
      tier = row.tier || tier;
      tr.dataset.given = i;
    });
    for (const [l, tr] of own) { // learners without this metric
      for (const name of ["rank", "quality", "range", "cost", "features"]) put(tr.cells, name, "-");
      tr.classList.remove("lead", "edge");
      tr.classList.add("none");
      tr.dataset.given = order.length + l;
    }
    table.dataset.by = inOrder(set(), view(), place) ? "" : "quality";
    const sorted = table.dataset.by ? `Sorted by ${view().metric} within this budget, baselines last.` : set().order;
    table.querySelector(".sorted").textContent = state.sort ? "" : sorted;
    sortRows(table, state.sort);
    section().querySelector(".story").textContent = story(data, set(), view(), place);
    const limit = amount(view(), place);
    const unit = set().unit ? ` ${set().unit}` : "";
    const text = Number.isFinite(limit) ? `${cost(limit)}${unit}${set().reference ? `, ${percent(shareAt(view(), place))} of ${set().reference}'s cost` : ""}` : "no limit";
    $("f-amount").textContent = text;
    $("f-budget").setAttribute("aria-valuetext", text);
  }

  const purchases = () => drawPurchases(section().querySelector(".bought"), data, set(), view(),
    amount(view(), placeNow()), set().keeps?.from ?? here()[0].l);

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
    overview.strip();
    overview.rerank();
    wide();
    address.write();
  }

  /** All data sets as they stand at the budget chosen, for paper. */
  function allSets() {
    const kept = { ...state };
    printed = true;
    for (const s of numbers.filter(drawn)) {
      Object.assign(state, kept, { set: s, sort: s === kept.set ? kept.sort : null });
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
    all();
  }
  window.addEventListener("beforeprint", allSets);
  window.addEventListener("afterprint", onScreen);
  matchMedia("print").addEventListener("change", (e) => (e.matches ? allSets() : onScreen()));

  // events
  function goTo(s) { // at the budget chosen, or where the data set opens
    Object.assign(state, { set: s, point: null, sort: null });
  }
  for (const id of ["f-set", "f-accounting"]) {
    $(id).addEventListener("change", (e) => { goTo(Number(e.target.value)); all(); });
  }
  for (const name of ["metric", "kind"]) $(`f-${name}`).addEventListener("change", (e) => { state[name] = e.target.value; state.point = null; all(); });
  $("f-budget").addEventListener("input", (e) => {
    const place = Number(e.target.value);
    state.share = view() === set().views[0] && place === set().opens ? null : shareAt(view(), place);
    draw();
    rerank();
    overview.rerank();
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
    overview.strip();
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
    else if (button.closest("thead")) headClicked(button);
  });

  function headClicked(button) {
    const head = button.closest("th");
    const table = head.closest("table");
    const column = head.cellIndex;
    const now = table.dataset.sort ? JSON.parse(table.dataset.sort) : null;
    const sort = now?.column !== column ? { column, back: false } : now.back ? null : { column, back: true };
    sortRows(table, sort);
    if (table.classList.contains("board")) { state.sort = sort; address.write(); }
  }

  for (const box of document.querySelectorAll(".chart")) {
    const move = (event) => { const point = nearest(event); if (point) showPoint(point); };
    box.addEventListener("pointermove", move);
    box.addEventListener("pointerdown", move);
    box.addEventListener("keydown", walk);
    box.tabIndex = 0;
  }
  const save = savingOf(data, shown, options);
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
