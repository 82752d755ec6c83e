// Charts of purchases along the trade-off.
//
// A step has its budget (x), by group of prices the percentage of rows that buy (g), how many sensors are bought for
// every row, for some and never with the places of the first of them (for some rows also percentages), and the order of purchases where models say it.

/** The shares of rows that buy the sensors of each group of prices, by budget: a chart whose curves are the groups. */
function boughtSvg(colours, groups, steps, width, at) {
  const curves = groups.map((_, l) => ({ l, x: steps.map((s) => s.x), y: steps.map((s) => s.g[l]) }));
  const view = { words: "% of rows that buy", higher: true, kind: "mean", curves };
  const learners = groups.map((title, g) => [title.replace(/^cost | \(.*/g, ""), 0, g, 0, g]);
  return chart({ learners, colours, shares: [] }, { name: "purchases" }, view, { width, whole: true, plot: 190, budget: steps[at]?.x }).svg;
}

const sensors = (n) => `${n} sensor${n === 1 ? "" : "s"}`;

/** A row of cells for each sensor [place, percentage of rows, mean step, a digit for each step]: darker where more rows buy. */
function orderSvg(names, order, width) {
  const longest = Math.max(...order.map(([k]) => names[k].length));
  const [left, right] = [12 + 6 * longest, 96]; // a wide picture scrolls
  const size = Math.max(8, Math.min(18, (width - left - right) / order[0][3].length));
  width = Math.max(width, left + right + size * order[0][3].length);
  const rows = order.map(([k, percent, step, digits], i) => {
    const cells = [...digits].map((digit, j) => `<rect class="bar" x="${left + size * j}" y="${18 * i + 2}" width="${size - 1}" height="15" opacity="${Math.max(0.04, digit / 9)}"/>`);
    return `<text class="words" x="0" y="${18 * i + 14}">${esc(names[k])}</text>${cells.join("")}`
      + `<text class="words" x="${left + 6 + size * digits.length}" y="${18 * i + 14}">${percent}%, step ${step}</text>`;
  });
  const label = order.map(([k, percent, step]) => `${esc(names[k])} is bought for ${percent}% of rows, in step ${step} on average`).join(", ");
  const height = 18 * order.length + 4;
  return `<svg class="order" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${label}" font-size="11">${rows.join("")}</svg>`;
}

/** The sensors bought for every row, for some and never; the first of each by name. */
function boughtHtml(set, step) {
  const unit = set.unit ? ` ${set.unit}` : "";
  const list = ([count, named, percent]) => {
    const shown = named.map((k, i) => esc(set.bought.names[k]) + (percent ? ` (${percent[i]}%)` : "")).join(named.some((k) => set.bought.names[k].includes(",")) ? "; " : ", ");
    return `${sensors(count)}${count ? `: ${shown}` : ""}${count > named.length ? ` and ${count - named.length} more` : ""}`;
  };
  const saved = step.never[0] ? ` Not buying these saves ${cost(step.saved)}${unit} per row.` : "";
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
  const alone = steps.length === 1 && curve.x.length > 1; // with many learners most are shown only at their best
  const next = steps.findIndex((step) => step.x >= limit * (1 - 1e-5));
  const at = alone ? 0 : next < 0 ? steps.length - 1 : next;
  const width = Math.min(Math.max(300, place.clientWidth || 600), 540);
  const names = Object.keys(of).map((l) => `<option value="${l}"${l === String(chosen) ? " selected" : ""}>${esc(data.learners[l][0])}</option>`);
  const list = set.bought.groups.map((title, g) => `<li><span class="t k${g}" aria-hidden="true">${MARKS[g]}</span> ${esc(title)}: ${steps[at].g[g]}% of rows</li>`);
  const when = alone ? "Share of rows that buy a sensor at its best point. This page shows the best learners at all budgets; bench features shows all learners:" : "Share of rows that buy a sensor at this budget:";
  const order = steps[at]?.order;
  const inOrder = !order ? "" : "<div><p>Order of purchases: first step on the left, darker if more rows buy; share of rows and mean step.</p>"
    + `<div class="scroll" role="region" tabindex="0" aria-label="Order of purchases">${orderSvg(set.bought.names, order, width)}</div></div>`;
  const box = place.querySelector(".answer");
  const focused = document.activeElement === box.querySelector("select");
  box.innerHTML = `<p>What <select aria-label="learner whose purchases are shown">${names.join("")}</select> buys</p>`
    + `<div class="two"><div>${boughtSvg(data.colours, set.bought.groups, steps, width, at)}<p>${when}</p><ul>${list.join("")}</ul>${boughtHtml(set, steps[at])}</div>${inOrder}</div>`;
  const select = box.querySelector("select");
  if (focused) select.focus();
  select.onchange = () => { place.dataset.l = select.value; drawPurchases(place, data, set, shown, limit, leader); };
}
