// Sorting of tables.

/** Sort a table's rows, best first or back; null: as given. Baselines stay below, what has no value last. */
function sortRows(table, sort) {
  const body = table.tBodies[0];
  const heads = table.tHead.rows[0].cells;
  const head = sort && heads[sort.column];
  for (const th of heads) th.removeAttribute("aria-sort");
  if (sort) table.dataset.sort = JSON.stringify(sort);
  else delete table.dataset.sort;
  const down = (head?.dataset.first === "down") !== Boolean(sort?.back);
  if (head) head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const value = (tr) => {
    const cell = tr.cells[sort.column];
    const text = cell.dataset.v ?? cell.textContent.trim();
    if (text === "-" || text === "") return null;
    return head.classList.contains("n") ? parseFloat(text) : text;
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

/** Column names in cells, for phones. */
function stack(table) {
  const names = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
  for (const tr of table.tBodies[0].rows) [...tr.cells].forEach((cell, i) => { cell.dataset.name = names[i]; });
}

for (const head of document.querySelectorAll("th[data-first]")) head.innerHTML = `<button type="button">${head.innerHTML}</button>`;
for (const table of document.querySelectorAll("table.stacks")) if (table.tHead.rows.length) stack(table);
document.addEventListener("click", (event) => { // a heading sorts, then sorts back, then undoes it
  const head = event.target.closest("thead button")?.closest("th");
  if (!head) return;
  const table = head.closest("table");
  const column = head.cellIndex;
  const now = table.dataset.sort ? JSON.parse(table.dataset.sort) : null;
  sortRows(table, now?.column !== column ? { column, back: false } : now.back ? null : { column, back: true });
});
