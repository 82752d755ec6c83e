// Pictures of what is bought along the trade-off, and of the stages that rows go through.

/** The shares of rows that buy the sensors of each group of prices, by budget. */
function boughtSvg(groups, steps, width, at) {
  const [left, top, height] = [44, 12, 210];
  const [right, bottom] = [width - (width < 480 ? 26 : 150), height - 40];
  const positive = steps.x.filter((x) => x > 0);
  const most = Math.max(...positive, 1e-9);
  const least = Math.max(Math.min(...positive, most / 2), most / 1e4);
  const across = (x) => Math.round(left + clamp(Math.log(Math.max(x, least) / least) / Math.log(most / least), 0, 1) * (right - left));
  const down = (share) => Math.round(bottom - (share / 100) * (bottom - top));
  const drawn = groups.map((title, g) => ({ title, g, y: steps.s.map((s) => s[g] ?? 0) }));
  const places = spread(drawn.map((one) => down(one.y.at(-1))), GAP, top, bottom);
  const ruled = [0, 50, 100].map((v) => `M${left} ${down(v)}H${right}`).join("");
  const words = [0, 50, 100].map((v) => `<text x="${left - 6}" y="${down(v) + 4}" text-anchor="end">${v}%</text>`)
    .concat(logTicks(least, most, width < 480).map((v) => `<text x="${across(v)}" y="${bottom + 18}" text-anchor="middle">${brief(v)}</text>`))
    .concat(`<text x="${(left + right) / 2}" y="${height - 6}" text-anchor="middle">budget: mean cost per row</text>`);
  const lines = drawn.map(({ g, y }) => {
    const line = y.map((v, i) => (i ? `H${across(steps.x[i])}V${down(v)}` : `M${across(steps.x[0])} ${down(v)}`)).join("");
    const dots = y.map((v, i) => `M${across(steps.x[i])} ${down(v)}h0`).join("");
    return `<path class="k${g}" stroke-width="1.8" d="${line}H${right}"/><path class="k${g}" stroke-width="5" stroke-linecap="round" d="${dots}"/>`;
  });
  const ends = drawn.map(({ title, g }, i) => `<text class="k${g}" x="${right + 6}" y="${places[i] + 4}">${MARKS[g]}${width < 480 ? "" : ` ${esc(title.replace(/ \(.*/, ""))}`}</text>`);
  const now = at < 0 ? "" : `<path class="cursor" fill="none" stroke-dasharray="4 3" d="M${across(steps.x[at])} ${top}V${bottom}"/>`;
  return `<svg viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="Share of rows that buy, by price and budget; the list below has the numbers" font-size="12">`
    + `<path class="rule" fill="none" d="${ruled}"/><g class="words">${words.join("")}</g>${now}<g class="lines" fill="none">${lines.join("")}</g><g class="marks">${ends.join("")}</g></svg>`;
}

const sensors = (n) => `${n} sensor${n === 1 ? "" : "s"}`;

/** Bars for a chain of stages: who gets there, and what the way may buy. */
function chainSvg(tree, reached, width) {
  const shown = reached.map((_, k) => k).filter((k) => reached.length <= 16 || k % Math.ceil(reached.length / 16) === 0 || k === reached.length - 1);
  const [left, row] = [64, 24];
  const full = width - left - 190;
  const bars = shown.map((k, i) => {
    const y = 4 + i * row;
    const text = `${reached[k]}%, ${sensors(tree.n[k])} for ${cost(tree.c[k])}`;
    return `<text class="words" x="0" y="${y + 14}">stage ${k + 1}</text>`
      + `<rect class="bar" x="${left}" y="${y}" width="${Math.max(1, full * reached[k] / 100)}" height="${row - 6}"/>`
      + `<text class="words" x="${left + 6 + full * reached[k] / 100}" y="${y + 14}">${text}</text>`;
  });
  const label = shown.map((k) => `stage ${k + 1} is reached by ${reached[k]}% of rows`).join(", ");
  const height = shown.length * row + 8;
  return `<svg viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${label}" font-size="12">${bars.join("")}</svg>`;
}

/** A tree of stages: wide lines for many rows. */
function treeSvg(tree, reached, width) {
  const children = tree.p.map((_, k) => tree.p.flatMap((parent, c) => (parent === k ? [c] : [])));
  const depth = [];
  tree.p.forEach((parent, k) => { depth[k] = parent < 0 ? 0 : depth[parent] + 1; });
  const leaves = children.filter((c) => !c.length).length;
  const x = [];
  let leaf = 0;
  const settle = (k) => {
    children[k].forEach(settle);
    x[k] = children[k].length ? children[k].reduce((sum, c) => sum + x[c], 0) / children[k].length : (leaf++ + 0.5) * width / leaves;
  };
  settle(0);
  const y = (k) => 22 + depth[k] * 62;
  const edges = tree.p.map((parent, k) => (parent < 0 ? "" : `<path class="edge" d="M${x[parent]} ${y(parent) + 19}L${x[k]} ${y(k) - 14}" stroke-width="${(0.5 + reached[k] / 12).toFixed(1)}"/>`));
  const nodes = tree.p.map((_, k) => `<text text-anchor="middle" x="${x[k]}" y="${y(k)}" font-weight="600">${reached[k]}%</text><text class="words" text-anchor="middle" x="${x[k]}" y="${y(k) + 13}">${tree.n[k]}</text>`);
  const label = tree.p.map((parent, k) => `stage ${k + 1}${parent < 0 ? "" : ` after ${parent + 1}`}: ${reached[k]}% of rows, ${sensors(tree.n[k])}`).join("; ");
  const height = 44 + 62 * Math.max(...depth);
  return `<svg viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${label}" font-size="12" fill="currentColor">${edges.join("")}${nodes.join("")}</svg>`;
}

const NAMED = 6; // sensors of a kind that are named

/** The sensors bought for every row, for some and never, from the percentages of each; those that cost most per row first. */
function boughtHtml(set, percent) {
  const { names, price } = set.pictures;
  const unit = set.unit && set.unit !== "cost" ? ` ${set.unit}` : "";
  const order = percent.map((_, k) => k).sort((a, b) => percent[b] * price[b] - percent[a] * price[a] || percent[b] - percent[a] || price[b] - price[a]);
  const of = (wanted) => order.filter((k) => wanted(percent[k]));
  const list = (own, more = () => "") => {
    const shown = own.slice(0, NAMED).map((k) => `${esc(names[k])}${more(k)}`).join(", ");
    return `${sensors(own.length)}${own.length ? `: ${shown}` : ""}${own.length > NAMED ? ` and ${own.length - NAMED} more` : ""}`;
  };
  const never = of((v) => v === 0);
  const saved = never.reduce((sum, k) => sum + price[k], 0);
  const rest = never.length ? ` Never buying these saves ${cost(saved)}${unit} a row.` : "";
  return `<dl class="bought"><dt>for every row</dt><dd>${list(of((v) => v === 100))}</dd>`
    + `<dt>for some rows</dt><dd>${list(of((v) => v > 0 && v < 100), (k) => ` (${percent[k]}%)`)}</dd>`
    + `<dt>never</dt><dd>${list(never)}.${rest}</dd></dl>`;
}

/** Both pictures of one learner at a budget, `leader` until another one is chosen. */
function drawPictures(place, data, set, shown, limit, leader) {
  const of = set.pictures?.of;
  place.hidden = !of || !shown;
  if (place.hidden) return;
  const chosen = of[place.dataset.l] ? place.dataset.l : of[leader] ? leader : Object.keys(of)[0];
  const steps = boughtOf(data, set, chosen);
  const curve = set.views[0].curves.find((c) => c.l === Number(chosen));
  const alone = steps.x.length === 1 && curve.x.length > 1; // of many learners most are packed at their best only
  const at = alone ? 0 : held(steps, limit);
  const width = Math.min(Math.max(300, place.clientWidth || 600), 540);
  const names = Object.keys(of).map((l) => `<option value="${l}"${l === String(chosen) ? " selected" : ""}>${esc(data.learners[l][0])}</option>`);
  const list = set.pictures.groups.map((title, g) => `<li><span class="t k${g}" aria-hidden="true">${MARKS[g]}</span> ${esc(title)}: ${at < 0 ? "-" : `${steps.s[at][g]}% of rows`}</li>`);
  const which = at < 0 ? "" : boughtHtml(set, steps.b[at]);
  const when = alone ? "Share of rows that buy a sensor at its best point; this page follows the best learners along budgets, bench features all:" : at < 0 ? "Nothing can be had at this budget." : "Share of rows that buy a sensor at this budget:";
  const tree = at >= 0 && steps.t && steps.t[at] >= 0 ? set.pictures.trees[steps.t[at]] : null;
  const chain = tree?.p.every((parent, k) => parent === k - 1);
  const stages = !tree ? "" : `<div><p>Stages at that point: rows that get there, and ${chain ? "what the way may buy" : "how many sensors the way may buy"} (first repeat).</p>`
    + `<div class="scroll" role="region" tabindex="0" aria-label="Stages">${(chain ? chainSvg : treeSvg)(tree, steps.r[at], width)}</div></div>`;
  const html = `<p>What <select aria-label="learner whose purchases are shown">${names.join("")}</select> buys</p>`
    + `<div class="two"><div>${boughtSvg(set.pictures.groups, steps, width, at)}<p>${when}</p><ul>${list.join("")}</ul>${which}</div>${stages}</div>`;
  const box = place.querySelector(".answer");
  const focused = document.activeElement === box.querySelector("select");
  box.innerHTML = html;
  const select = box.querySelector("select");
  if (focused) select.focus();
  select.onchange = () => { place.dataset.l = select.value; drawPictures(place, data, set, shown, limit, leader); };
}
