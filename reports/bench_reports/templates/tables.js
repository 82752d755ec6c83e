// Tables: comparison of two learners, curves as numbers, sorting.

/** Where learner a beats learner b: at the budget, and unit by unit both at their best. */
function versusHtml(data, view, pairs, a, b, place, name) {
  const names = pairs.learners;
  const select = (id, value) => `<select data-side="${id}" aria-label="learner ${id.toUpperCase()}">${names.map((l) => `<option value="${l}"${l === value ? " selected" : ""}>${esc(data.learners[l][0])}</option>`).join("")}</select>`;
  const [i, j] = [names.indexOf(a), names.indexOf(b)];
  const [low, high] = [Math.min(i, j), Math.max(i, j)];
  const counted = (won) => {
    const [x, y] = i < j ? won : [won[1], won[0]];
    return `better on <b>${x}%</b> of ${pairs.units}, worse on <b>${y}%</b>, equal on ${Math.max(0, Number((100 - x - y).toFixed(1)))}%`;
  };
  const first = pairs.first; // only for these known within budgets
  const pair = high < first ? low * first - (low * (low + 1)) / 2 + high - low - 1 : -1;
  const both = [a, b].every((l) => ranking(data, view, place).some((row) => row.l === l && row.at >= 0));
  const here = pair >= 0 && both && place < data.shares.length ? ` There ${esc(data.learners[a][0])} is ${counted(pairs.within[pair][place])}.` : "";
  const best = counted(pairs.best[low][high - low - 1]);
  const now = atBudget(data, view, place, a, b, name);
  return `<p>Where does ${select("a", a)} beat ${select("b", b)}?</p><p>${now}${here}</p><p>Both at their best: ${best}.</p>`;
}

/** What two learners reach at a place of the slider, and the command that says how sure the difference is. */
function atBudget(data, view, place, a, b, set) {
  const rows = ranking(data, view, place);
  const [one, other] = [a, b].map((l) => rows.find((row) => row.l === l));
  const limit = amount(data, view, place);
  const names = [a, b].map((l) => data.learners[l][0]);
  const when = Number.isFinite(limit) ? `Within a budget of ${cost(limit)}` : "Without a limit";
  const none = [one, other].map((row, k) => (row && row.at >= 0 ? "" : names[k])).filter(Boolean);
  if (none.length) return esc(`${when} ${none.join(" and ")} cannot predict.`);
  const range = (row) => (row.tier ? ` (${quality(row.low)} to ${quality(row.high)})` : "");
  const gain = (view.higher ? 1 : -1) * (one.quality - other.quality);
  const word = gain === 0 ? "they are equal" : `${names[gain > 0 ? 0 : 1]} is ${quality(Math.abs(gain))} better`;
  const budget = Number.isFinite(limit) ? ` --budget ${Number(limit.toPrecision(6))}${view.kind === "mean" ? "" : ` --budget-kind ${view.kind}`}` : "";
  return `${esc(`${when}: ${names[0]} ${quality(one.quality)}${range(one)}, ${names[1]} ${quality(other.quality)}${range(other)}; ${word}. To test that:`)} <code>${esc(`bench compare ${names[0]} ${names[1]} --data ${set}${budget}`)}</code>.`;
}

/** A table of texts by learner. */
function tableHtml(caption, heads, rows) {
  const body = rows.map(([name, cells]) => `<tr><th scope="row">${esc(name)}</th>${cells.map((text) => `<td class="n">${text}</td>`).join("")}</tr>`);
  return `<table><caption>${esc(caption)}</caption><thead><tr><th scope="col">learner</th>${heads.map((head) => `<th scope="col" class="n">${head}</th>`).join("")}</tr></thead><tbody>${body.join("")}</tbody></table>`;
}

/** Area and regret with their intervals, best first; nothing where they are not known. */
function areasHtml(data, set) {
  const { metric, higher } = set.views[0];
  const rows = Object.entries(set.areas).sort(([, a], [, b]) => (higher ? b[0] - a[0] : a[0] - b[0]));
  const range = (low, high) => ((low ?? null) === null ? "-" : `${quality(low)} to ${quality(high)}`);
  const cells = ([area, low, high, regret, least, most]) => [quality(area), range(low, high), quality(regret), range(least, most)];
  const caption = `area: mean ${metric} over all budgets, on a logarithmic scale of cost; regret: mean distance of a curve to the best learner at each budget`;
  const made = rows.map(([l, numbers]) => [data.learners[l][0], cells(numbers)]);
  return rows.length ? tableHtml(caption, ["area", `${data.level} interval`, "regret", `${data.level} interval`], made) : "";
}

const SHOWN = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1];

/** The curves at a few budgets. */
function curvesHtml(data, view) {
  const budgets = SHOWN.map((share) => share * view.whole);
  const cells = (curve) => budgets.map((budget) => quality(within(curve, curve.y, budget)));
  const rows = ranking(data, view, data.shares.length).map(({ curve, l }) => [data.learners[l][0], cells(curve)]);
  return tableHtml(`${view.metric} on test by ${AXIS[view.kind]}`, budgets.map(cost), rows);
}

/** Sort a table's rows, best first or back; null: as given. Baselines stay below, what has no value last. */
function sortRows(table, sort) {
  const body = table.tBodies[0];
  const head = sort && table.tHead.rows[0].cells[sort.column];
  const usual = table.dataset.by && [...table.tHead.rows[0].cells].find((h) => h.dataset.is === table.dataset.by);
  for (const th of table.tHead.rows[0].cells) th.removeAttribute("aria-sort");
  if (sort) table.dataset.sort = JSON.stringify(sort);
  else delete table.dataset.sort;
  const down = (head?.dataset.first === "down") !== Boolean(sort?.back);
  if (head) head.setAttribute("aria-sort", down ? "descending" : "ascending");
  else if (usual) usual.setAttribute("aria-sort", usual.dataset.first === "down" ? "descending" : "ascending");
  const value = (tr) => {
    const cell = tr.cells[sort.column];
    const text = cell.dataset.v ?? cell.textContent.trim();
    if (text === "-" || text === "") return null;
    return head.classList.contains("n") ? (text === "free" ? Infinity : parseFloat(text)) : text;
  };
  const rows = [...body.rows];
  rows.forEach((tr, i) => { tr.dataset.given ??= i; });
  rows.sort((a, b) => {
    const low = a.classList.contains("baseline") - b.classList.contains("baseline");
    const given = a.dataset.given - b.dataset.given;
    if (low || !sort) return low || given;
    const [x, y] = [value(a), value(b)];
    if (x === null || y === null) return (x === null) - (y === null) || given;
    const order = typeof x === "string" ? x.localeCompare(y) : x - y;
    return (down ? -order : order) || given;
  });
  if (rows.some((tr, i) => body.rows[i] !== tr)) body.append(...rows);
}

for (const table of document.querySelectorAll("table.stacks")) { // column names, for phones
  const names = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
  for (const tr of table.tBodies[0].rows) [...tr.cells].forEach((cell, i) => { cell.dataset.name = names[i]; });
}
