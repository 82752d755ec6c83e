// What a learner buys at a place of the slider: a bar for each sensor.

const BAR = 18; // height of a line

/** Bars [label, percentage of rows] as SVG. */
function barsSvg(bars, width) {
  const longest = Math.max(...bars.map(([label]) => label.length));
  const left = Math.min(7 * longest, 0.55 * width);
  const lines = bars.map(([label, percent], i) => {
    const most = Math.floor(left / 7);
    const short = label.length > most ? `${label.slice(0, most - 1)}…` : label;
    const size = Math.round((width - left - 56) * percent / 100);
    return `<text class="words" x="0" y="${BAR * i + 13}">${esc(short)}</text><rect class="bar" x="${left + 6}" y="${BAR * i + 2}" width="${Math.max(size, 1)}" height="14"/>`
      + `<text class="words" x="${left + 12 + size}" y="${BAR * i + 13}">${percent}%</text>`;
  });
  const label = bars.map(([name, percent]) => `${esc(name)}: ${percent}% of rows`).join(", ");
  return `<svg viewBox="0 0 ${width} ${BAR * bars.length}" width="${width}" height="${BAR * bars.length}" role="img" aria-label="${label}" font-size="12">${lines.join("")}</svg>`;
}

/** The purchases at one step: bars, with prices if they differ, and a sentence. */
function boughtHtml(set, [first, others, every, some, never, saved], width) {
  const differ = set.sensors.some(([, price]) => price !== set.sensors[0][1]);
  const bars = [];
  for (let i = 0; i < first.length; i += 2) {
    const [name, price] = set.sensors[first[i]];
    bars.push([differ ? `${name}, ${price ? cost(price) : "free"}` : name, first[i + 1]]);
  }
  const more = set.sensors.length - bars.length;
  if (more) bars.push([`${more} other${more === 1 ? "" : "s, mean"}`, others]);
  const unit = set.unit ? ` ${set.unit}` : "";
  const unbought = differ && never && saved ? `, which saves ${cost(saved)}${unit} per row` : "";
  return `${barsSvg(bars, width)}<p>Of ${set.sensors.length}, bought for every row: ${every}; for some rows: ${some}; never: ${never}${unbought}.</p>`;
}

/** The purchases of a learner at a budget, of `leader` until another one is chosen. */
function drawPurchases(place, data, set, view, limit, leader) {
  const stepsOf = (curve) => set.bought[view.curves.indexOf(curve)];
  const known = set.sensors?.length && view === set.views[0] ? view.curves.filter((curve) => stepsOf(curve).some(Boolean)) : [];
  place.hidden = !known.length;
  if (place.hidden) return;
  const curve = [Number(place.dataset.l ?? NaN), leader].map((l) => known.find((c) => c.l === l)).find(Boolean) ?? known[0];
  const bought = stepsOf(curve)[held(curve, limit)];
  const names = known.map(({ l }) => `<option value="${l}"${l === curve.l ? " selected" : ""}>${esc(data.learners[l][0])}</option>`);
  const box = place.querySelector(".answer");
  const focused = document.activeElement === box.querySelector("select");
  const width = Math.min(Math.max(300, place.clientWidth || 600), 640);
  box.innerHTML = `<p>What <select aria-label="learner whose purchases are shown">${names.join("")}</select> buys${set.sensors.some(([, price]) => price !== set.sensors[0][1]) ? ": price, and" : ":"} share of rows</p>`
    + (bought ? boughtHtml(set, bought, width) : "<p>Nothing is known of its purchases here.</p>");
  const select = box.querySelector("select");
  if (focused) select.focus();
  select.onchange = () => { place.dataset.l = select.value; drawPurchases(place, data, set, view, limit, leader); };
}
