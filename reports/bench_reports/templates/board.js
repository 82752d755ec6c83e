// The content at a budget: ranking, sentence, table.

const listed = (names, most = 3) => {
  const shown = names.length > most + 1 ? [...names.slice(0, most), `${names.length - most} more`] : names;
  return shown.length > 1 ? `${shown.slice(0, -1).join(", ")} and ${shown.at(-1)}` : shown[0];
};

/** The curves at a place of the slider, best on test first, those that cannot be had last. */
function ranking(data, view, place) {
  const limit = amount(view, place);
  const rows = view.curves.map((curve) => {
    const at = held(curve, limit);
    const [low, high, tier, over] = (at >= 0 && curve.sure?.[place]) || [null, null, 0, 0];
    return {
      l: curve.l, at, low, high, tier, over,
      name: data.learners[curve.l][0] + (data.learners[curve.l][1] ? " (a baseline)" : ""),
      baseline: data.learners[curve.l][1],
      leads: curve.l === view.leaders[place],
      constant: at === 0 && curve.constant,
      quality: curve.y[at] ?? null,
      wrong: curve.w?.[at] ?? null,
      cost: at < 0 ? null : curve.c?.[at],
    };
  });
  const sign = view.higher ? -1 : 1;
  return rows.sort((a, b) => (a.at < 0) - (b.at < 0) || sign * (a.quality - b.quality) || (a.cost ?? 0) - (b.cost ?? 0));
}

/** Whether this is the place of the conclusion, whose sentence and table are those of the board. */
const atAnswer = (set, view, place) => view === set.views[0] && place === set.opens;

/** The learner that is best on validation at this place, and those about as good; "" where the conclusion tells it. */
function story(data, set, view, place) {
  const limit = amount(view, place);
  if (atAnswer(set, view, place) || (view.kind === "cap" && set.told.includes(limit))) return "";
  const unit = set.unit ? ` ${set.unit}` : "";
  const when = !Number.isFinite(limit) ? "At any cost" : view.kind === "cap" ? `With no row above ${cost(limit)}${unit}` : `At most ${cost(limit)}${unit}`;
  const rows = ranking(data, view, place).filter((row) => row.at >= 0);
  const lead = rows.find((row) => row.leads);
  if (!lead) return `${when}: no learner has a result.`;
  const lost = lead.wrong === null ? `${view.metric} ${quality(lead.quality)}` : `wrong for ${lead.wrong} of ${set.tested}`;
  if (lead.constant) return `${when}: nothing is bought; always the same answer, ${lost}.`;
  const others = rows.filter((row) => row.tier && !row.leads && !row.constant);
  const named = (some, words) => (some.length ? `; ${listed(some.map((row) => row.name))} ${some.length > 1 ? "are" : "is"} ${words}` : "");
  const more = named(others.filter((row) => row.tier === lead.tier), "about as good") + named(others.filter((row) => row.tier < lead.tier), "better on test");
  const paid = cost(lead.cost) + (Number(cost(lead.cost)) > Number(cost(limit)) ? " on test" : ""); // budgets are on validation
  return `${when}: ${lead.name}, ${paid}, ${lost}${more}.`;
}

/** The table at a budget: its head, and its rows with baselines last. */
function tableHtml(data, view, rows) {
  const wrong = rows.some((row) => row.wrong !== null);
  const better = `data-first="${view.higher ? "down" : "up"}"`;
  const head = (name, more) => `<th scope="col" ${more}><button type="button">${esc(name)}</button></th>`;
  const cell = (text, small) => `<td${small ? "" : ' class="more"'}>${text}</td>`;
  const body = [...rows].sort((a, b) => a.baseline - b.baseline).map((row) => {
    const { css, mark } = look(data, row.l);
    const kinds = [row.baseline && "baseline", row.leads && !row.constant && "lead", row.at < 0 && "none"].filter(Boolean).join(" ");
    return `<tr data-l="${row.l}" class="${kinds}"><th scope="row" data-file="${esc(data.learners[row.l][0])}"><span class="t ${css}" aria-hidden="true">${mark}</span> ${esc(data.learners[row.l][0])}</th>`
      + cell(`${cost(row.cost)}${row.over ? "!" : ""}`, true) + (wrong ? cell(row.wrong ?? "-", true) : "")
      + `${cell(quality(row.quality), !wrong)}${cell(interval(row.low, row.high))}</tr>`;
  });
  const up = 'data-first="up"';
  return [`<tr>${head("learner", up)}${head("cost", `${up} class="n"`)}${wrong ? head("wrong", `${up} class="n"`) : ""}`
    + `${head(view.metric, `${better} class="n"`)}${head(`${data.level} interval`, `${better} class="n"`)}</tr>`, body.join("")];
}

/** The table that is shown, as the lines of a file. */
function csv(table) {
  const cell = (node) => {
    const text = (node.dataset.file ?? node.innerText).trim();
    const safe = /^[=+\-@\t\r]/.test(text) && text !== "-" && Number.isNaN(Number(text)) ? `'${text}` : text; // no formula
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return [...table.rows].map((row) => `${[...row.cells].map(cell).join(",")}\r\n`).join("");
}
