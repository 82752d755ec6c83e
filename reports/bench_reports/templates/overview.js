// All data sets at once: the table of ranks, and a small chart of each.

function overviewOf(data, { state, numbers, sets, viewIn, shareNow }) {
  const overview = $("overview");
  const say = (place, text) => { if (place && place.textContent !== text) place.textContent = text; };
  const cells = new Map(); // learner -> its row and cells
  if (overview) {
    overview.style.width = `${20 + 4.5 * sets().length}rem`; // fixed columns: laid out much faster
    overview.style.tableLayout = "fixed";
    for (const tr of overview.querySelector("tbody").rows) cells.set(Number(tr.dataset.l), tr);
  }
  const FIRST = 10; // rows of the table of ranks shown at first
  const every = $("f-all");
  if (overview && cells.size > FIRST + 2) {
    const turn = () => {
      const short = overview.classList.toggle("short");
      every.textContent = short ? `all ${cells.size} learners` : `the first ${FIRST}`;
      every.setAttribute("aria-pressed", !short);
    };
    every.hidden = false;
    every.addEventListener("click", turn);
    turn();
  }
  function rerank() {
    if (!overview) return;
    const shown = sets().filter((s) => data.sets[s].views.length);
    const share = shareNow();
    const found = overall(data, shown, viewIn, share);
    const order = [];
    const put = (cell, text, lead) => {
      if (cell.textContent !== text) cell.textContent = text;
      if (cell.classList.contains("lead") !== lead) cell.classList.toggle("lead", lead);
    };
    let last = null;
    for (const row of found.rows) {
      const tr = cells.get(row.l);
      if (!tr) continue;
      order.push(tr);
      put(tr.cells[1], row.lacks ? "-" : row.mean.toFixed(2), false);
      put(tr.cells[2], row.lacks ? `on ${row.has} of ${found.sets}` : `${row.firsts} of ${found.sets}`, false);
      for (const s of shown) {
        const own = row.cells[s];
        put(tr.cells[3 + s], own ? (row.lacks ? "✓" : brief(own.rank)) : "-", Boolean(own?.lead));
      }
      tr.classList.toggle("more", order.length > FIRST);
      tr.classList.toggle("rule", last !== null && row.lacks > last);
      last = row.lacks;
    }
    say(document.querySelector(".headline"), overallStory(data, found, share));
    const by = found.whole ? "Ranks are by mean quality over all budgets, as on a terminal" : "Ranks are by quality at the budget chosen above, the same share of the reference's cost on each data set";
    say($("ranked-by"), `${by}. Bold: ${found.whole ? "first" : "not significantly worse than the best"} of the data set.`);
    const body = overview.querySelector("tbody");
    if (order.some((tr, i) => body.rows[i] !== tr)) body.append(...order);
  }

  function strip() {
    if (!overview) return;
    const shown = sets();
    for (const tr of overview.rows) for (const s of numbers) tr.cells[3 + s].hidden = !shown.includes(s);
    $("strip").innerHTML = shown.map((i) => {
      const s = data.sets[i];
      if (!s.views.length) return "";
      const { svg } = chart(data, s, viewIn(s), { width: 132, mini: true, hidden: state.hidden });
      return `<button type="button" data-go="${i}" aria-pressed="${i === state.set}">${svg.replace(/ role="img" aria-label="[^"]*"/, ' aria-hidden="true"')}<span>${esc(s.data)}</span></button>`;
    }).join("");
  }
  return { rerank, strip };
}
