// Comparison of two learners, and sorting of tables.

/** Where learner a beats learner b: what they reach at the budget, and on how many rows each is better. */
function versusHtml(data, view, pairs, a, b, place, name) {
  const names = pairs.learners;
  const select = (id, value) => `<select data-side="${id}" aria-label="learner ${id.toUpperCase()}">${names.map((l) => `<option value="${l}"${l === value ? " selected" : ""}>${esc(data.learners[l][0])}</option>`).join("")}</select>`;
  const [i, j] = [names.indexOf(a), names.indexOf(b)];
  const [low, high] = [Math.min(i, j), Math.max(i, j)];
  const pair = low * names.length - (low * (low + 1)) / 2 + high - low - 1;
  const [first, second] = pairs.won[pair][place];
  const [better, worse] = i < j ? [first, second] : [second, first];
  const both = [a, b].every((l) => ranking(data, view, place).some((row) => row.l === l && row.at >= 0));
  const won = ` ${esc(data.learners[a][0])} is better on <b>${better}%</b> of ${pairs.units}, worse on <b>${worse}%</b>, equal on ${Math.max(0, Number((100 - better - worse).toFixed(1)))}%.`;
  return `<p>Where does ${select("a", a)} beat ${select("b", b)}?</p><p>${atBudget(data, view, place, a, b, name)}${both ? won : ""}</p>`;
}

/** What two learners reach at a place of the slider, and the command that says how sure the difference is. */
function atBudget(data, view, place, a, b, set) {
  const rows = ranking(data, view, place);
  const [one, other] = [a, b].map((l) => rows.find((row) => row.l === l));
  const limit = amount(view, place);
  const names = [a, b].map((l) => data.learners[l][0]);
  const when = Number.isFinite(limit) ? `Within a budget of ${cost(limit)}` : "Without a limit";
  const none = [one, other].map((row, k) => (row && row.at >= 0 ? "" : names[k])).filter(Boolean);
  if (none.length) return esc(`${when} ${none.join(" and ")} cannot predict.`);
  const range = (row) => (row.tier ? ` (${quality(row.low)} to ${quality(row.high)})` : "");
  const gain = (view.higher ? 1 : -1) * (one.quality - other.quality);
  const word = gain === 0 ? "they are equal" : `${names[gain > 0 ? 0 : 1]} is ${quality(Math.abs(gain))} better`;
  const budget = Number.isFinite(limit) ? ` --budget ${Number(limit.toPrecision(6))}${view.kind === "mean" ? "" : ` --budget-kind ${view.kind}`}` : "";
  return `${esc(`${when}: ${names[0]} ${quality(one.quality)}${range(one)}, ${names[1]} ${quality(other.quality)}${range(other)}; ${word}. To test that:`)} <code>${esc(`bench compare ${[...names, "--run", data.run, "--data", set].map(shellWord).join(" ")}${budget}`)}</code>.`;
}

/** Quote a word for a shell. */
function shellWord(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
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
