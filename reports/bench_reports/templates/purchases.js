// Pictures of what is bought along the trade-off, and of the stages that rows go through.
//
// A step has its budget (x), by group of prices the percentage of rows that buy (g), how many sensors are bought for
// every row, for some and never with the places of the first of them (for some rows also percentages), and of stages
// [parent, sensors, cost, percentage of rows that get there].

/** The shares of rows that buy the sensors of each group of prices, by budget. */
function boughtSvg(groups, steps, width, at) {
  const [left, top, height] = [44, 12, 210];
  const [right, bottom] = [width - (width < 480 ? 26 : 150), height - 40];
  const positive = steps.map((s) => s.x).filter((x) => x > 0);
  const most = Math.max(...positive, 1e-9);
  const least = Math.max(Math.min(...positive, most / 2), most / 1e4);
  const across = (x) => Math.round(left + clamp(Math.log(Math.max(x, least) / least) / Math.log(most / least), 0, 1) * (right - left));
  const down = (share) => Math.round(bottom - (share / 100) * (bottom - top));
  const drawn = groups.map((title, g) => ({ title, g, y: steps.map((s) => s.g[g]) }));
  const places = spread(drawn.map((one) => down(one.y.at(-1))), GAP, top, bottom);
  const ruled = [0, 50, 100].map((v) => `M${left} ${down(v)}H${right}`).join("");
  const words = [0, 50, 100].map((v) => `<text x="${left - 6}" y="${down(v) + 4}" text-anchor="end">${v}%</text>`)
    .concat(logTicks(least, most, width < 480).map((v) => `<text x="${across(v)}" y="${bottom + 18}" text-anchor="middle">${brief(v)}</text>`))
    .concat(`<text x="${(left + right) / 2}" y="${height - 6}" text-anchor="middle">budget: mean cost per row</text>`);
  const lines = drawn.map(({ g, y }) => {
    const line = y.map((v, i) => (i ? `H${across(steps[i].x)}V${down(v)}` : `M${across(steps[0].x)} ${down(v)}`)).join("");
    const dots = y.map((v, i) => `M${across(steps[i].x)} ${down(v)}h0`).join("");
    return `<path class="k${g}" stroke-width="1.8" d="${line}H${right}"/><path class="k${g}" stroke-width="5" stroke-linecap="round" d="${dots}"/>`;
  });
  const ends = drawn.map(({ title, g }, i) => `<text class="k${g}" x="${right + 6}" y="${places[i] + 4}">${MARKS[g]}${width < 480 ? "" : ` ${esc(title.replace(/ \(.*/, ""))}`}</text>`);
  const now = at < 0 ? "" : `<path class="cursor" fill="none" stroke-dasharray="4 3" d="M${across(steps[at].x)} ${top}V${bottom}"/>`;
  return `<svg viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="Share of rows that buy, by price and budget; the list below has the numbers" font-size="12">`
    + `<path class="rule" fill="none" d="${ruled}"/><g class="words">${words.join("")}</g>${now}<g class="lines" fill="none">${lines.join("")}</g><g class="marks">${ends.join("")}</g></svg>`;
}

const sensors = (n) => `${n} sensor${n === 1 ? "" : "s"}`;

/** Bars for a chain of stages: who gets there, and what the way may buy. */
function chainSvg(stages, width) {
  const shown = stages.map((stage, k) => [k, ...stage]).filter(([k]) => k % Math.ceil(stages.length / 16) === 0 || k === stages.length - 1);
  const [left, row] = [64, 24];
  const full = width - left - 190;
  const bars = shown.map(([k, , count, price, reached], i) => {
    const y = 4 + i * row;
    return `<text class="words" x="0" y="${y + 14}">stage ${k + 1}</text>`
      + `<rect class="bar" x="${left}" y="${y}" width="${Math.max(1, full * reached / 100)}" height="${row - 6}"/>`
      + `<text class="words" x="${left + 6 + full * reached / 100}" y="${y + 14}">${reached}%, ${sensors(count)} for ${cost(price)}</text>`;
  });
  const label = shown.map(([k, , , , reached]) => `stage ${k + 1} is reached by ${reached}% of rows`).join(", ");
  const height = shown.length * row + 8;
  return `<svg viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${label}" font-size="12">${bars.join("")}</svg>`;
}

/** A tree of stages: wide lines for many rows. */
function treeSvg(stages, width) {
  const children = stages.map((_, k) => stages.flatMap(([parent], c) => (parent === k ? [c] : [])));
  const depth = [];
  stages.forEach(([parent], k) => { depth[k] = parent < 0 ? 0 : depth[parent] + 1; });
  const leaves = children.filter((c) => !c.length).length;
  const x = [];
  let leaf = 0;
  const settle = (k) => {
    children[k].forEach(settle);
    x[k] = children[k].length ? children[k].reduce((sum, c) => sum + x[c], 0) / children[k].length : (leaf++ + 0.5) * width / leaves;
  };
  settle(0);
  const y = (k) => 22 + depth[k] * 62;
  const edges = stages.map(([parent, , , reached], k) => (parent < 0 ? "" : `<path class="edge" d="M${x[parent]} ${y(parent) + 19}L${x[k]} ${y(k) - 14}" stroke-width="${(0.5 + reached / 12).toFixed(1)}"/>`));
  const nodes = stages.map(([, count, , reached], k) => `<text text-anchor="middle" x="${x[k]}" y="${y(k)}" font-weight="600">${reached}%</text><text class="words" text-anchor="middle" x="${x[k]}" y="${y(k) + 13}">${count}</text>`);
  const label = stages.map(([parent, count, , reached], k) => `stage ${k + 1}${parent < 0 ? "" : ` after ${parent + 1}`}: ${reached}% of rows, ${sensors(count)}`).join("; ");
  const height = 44 + 62 * Math.max(...depth);
  return `<svg viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${label}" font-size="12" fill="currentColor">${edges.join("")}${nodes.join("")}</svg>`;
}

/** The sensors bought for every row, for some and never; the first of each by name. */
function boughtHtml(set, step) {
  const unit = set.unit && set.unit !== "cost" ? ` ${set.unit}` : "";
  const list = ([count, named, percent]) => {
    const shown = named.map((k, i) => esc(set.bought.names[k]) + (percent ? ` (${percent[i]}%)` : "")).join(", ");
    return `${sensors(count)}${count ? `: ${shown}` : ""}${count > named.length ? ` and ${count - named.length} more` : ""}`;
  };
  const saved = step.never[0] ? ` Never buying these saves ${cost(step.saved)}${unit} a row.` : "";
  return `<dl><dt>for every row</dt><dd>${list(step.every)}</dd>`
    + `<dt>for some rows</dt><dd>${list(step.some)}</dd>`
    + `<dt>never</dt><dd>${list(step.never)}.${saved}</dd></dl>`;
}

/** Both pictures of one learner at a budget, `leader` until another one is chosen. */
function drawPurchases(place, data, set, shown, limit, leader) {
  const of = set.bought?.of;
  place.hidden = !of || !shown;
  if (place.hidden) return;
  const chosen = [place.dataset.l, leader].find((l) => of[l]) ?? Object.keys(of)[0];
  const steps = of[chosen];
  const curve = set.views[0].curves.find((c) => c.l === Number(chosen));
  const alone = steps.length === 1 && curve.x.length > 1; // of many learners most are shown at their best only
  const at = alone ? 0 : steps.findLastIndex((step) => step.x <= limit);
  const width = Math.min(Math.max(300, place.clientWidth || 600), 540);
  const names = Object.keys(of).map((l) => `<option value="${l}"${l === String(chosen) ? " selected" : ""}>${esc(data.learners[l][0])}</option>`);
  const list = set.bought.groups.map((title, g) => `<li><span class="t k${g}" aria-hidden="true">${MARKS[g]}</span> ${esc(title)}: ${at < 0 ? "-" : `${steps[at].g[g]}% of rows`}</li>`);
  const when = alone ? "Share of rows that buy a sensor at its best point; this page follows the best learners along budgets, bench features all:" : at < 0 ? "Nothing can be had at this budget." : "Share of rows that buy a sensor at this budget:";
  const stages = steps[at]?.stages;
  const chain = stages?.every(([parent], k) => parent === k - 1);
  const drawn = !stages ? "" : `<div><p>Stages at that point: rows that get there, and ${chain ? "what the way may buy" : "how many sensors the way may buy"} (first repeat).</p>`
    + `<div class="scroll" role="region" tabindex="0" aria-label="Stages">${(chain ? chainSvg : treeSvg)(stages, width)}</div></div>`;
  const box = place.querySelector(".answer");
  const focused = document.activeElement === box.querySelector("select");
  box.innerHTML = `<p>What <select aria-label="learner whose purchases are shown">${names.join("")}</select> buys</p>`
    + `<div class="two"><div>${boughtSvg(set.bought.groups, steps, width, at)}<p>${when}</p><ul>${list.join("")}</ul>${at < 0 ? "" : boughtHtml(set, steps[at])}</div>${drawn}</div>`;
  const select = box.querySelector("select");
  if (focused) select.focus();
  select.onchange = () => { place.dataset.l = select.value; drawPurchases(place, data, set, shown, limit, leader); };
}
