// What stands at a budget: ranking, sentences, tables to take away.

const times = (value) => (value < 100 ? `${value.toFixed(1)}x` : `${Math.round(value)}x`);
const percent = (share) => `${Number((100 * share).toPrecision(3))}%`;
const listed = (names, most = 3) => {
  const shown = names.length > most + 1 ? [...names.slice(0, most), `${names.length - most} more`] : names;
  return shown.length > 1 ? `${shown.slice(0, -1).join(", ")} and ${shown.at(-1)}` : shown[0];
};

/** The curves at a place of the slider, best first, those that cannot be had last. */
function ranking(data, view, place) {
  const limit = amount(data, view, place);
  const rows = view.curves.map((curve) => {
    const at = held(curve, limit);
    const sure = at >= 0 && curve.t && curve.t[place] > 0;
    return {
      l: curve.l, curve, at,
      baseline: data.learners[curve.l][1],
      quality: at < 0 ? null : curve.y[at],
      cost: at < 0 ? null : curve.c?.[at],
      p95: at < 0 ? null : curve.p?.[at],
      features: at < 0 ? null : curve.f?.[at],
      low: sure ? curve.lo[place] : null,
      high: sure ? curve.hi[place] : null,
      tier: sure ? curve.t[place] : 0,
      first: sure ? curve.r?.[place] : 0,
      last: sure ? curve.R?.[place] : 0,
    };
  });
  const sign = view.higher ? -1 : 1;
  rows.sort((a, b) => (a.at < 0) - (b.at < 0) || sign * (a.quality - b.quality) || (a.cost ?? 0) - (b.cost ?? 0));
  rows.forEach((row, i) => {
    const level = i > 0 && row.quality === rows[i - 1].quality && row.at >= 0;
    row.position = row.at < 0 ? 0 : level ? rows[i - 1].position : i + 1;
  });
  return rows;
}

function rankText(row) {
  if (row.at < 0) return "-";
  if (!row.tier || !row.first) return String(row.position);
  return row.first === row.last ? String(row.first) : `${row.first}–${row.last}`;
}

/** Who is ahead at this place, by how much, and how surely. */
function story(data, set, view, place) {
  const rows = ranking(data, view, place).filter((row) => row.at >= 0);
  const limit = amount(data, view, place);
  const share = place < data.shares.length && set.reference
    ? ` (${percent(data.shares[place])} of ${set.reference}'s best)` : "";
  const rowsMeant = { mean: "", p95: " for 95% of rows", cap: " for every row" }[view.kind];
  const when = place < data.shares.length ? `Within a budget of ${cost(limit)}${rowsMeant}${share}` : "Without a limit";
  if (!rows.length) return `${when} no learner can predict anything.`;
  const name = (row) => data.learners[row.l][0];
  const [top, ...others] = rows;
  const range = top.tier ? ` (${quality(top.low)} to ${quality(top.high)})` : "";
  let text = `${when}, ${name(top)} is ahead${top.baseline ? ", a baseline" : ""}: ${view.metric} ${quality(top.quality)}${range}${top.cost === undefined ? "" : ` at a cost of ${cost(top.cost)}`}.`;
  const level = others.filter((row) => row.tier === 1);
  const next = others.find((row) => row.tier > 1) ?? others[0];
  if (next) {
    const gap = Math.abs(top.quality - next.quality);
    if (!top.tier) text += ` ${name(next)} is next, ${quality(gap)} behind; how sure that is was not measured here.`;
    else if (!level.length) text += ` With 95% certainty it is better than all others; ${name(next)} is next, ${quality(gap)} behind.`;
    else {
      text += ` The data do not separate it from ${listed(level.map(name))}.`;
      if (next.tier > 1) text += ` It is better than ${name(next)}, ${quality(gap)} behind, with 95% certainty.`;
    }
  }
  return text;
}

/** Mean ranks over these data sets at a place, best first; of each set its own view. */
function overall(data, sets, viewOf, place) {
  const found = new Map(data.learners.map((_, l) => [l, { l, sum: 0, sets: 0, firsts: 0, cells: [] }]));
  for (const s of sets) {
    for (const row of ranking(data, viewOf(data.sets[s]), place)) {
      if (row.at < 0) continue;
      const own = found.get(row.l);
      own.sum += row.position;
      own.sets += 1;
      own.firsts += row.tier === 1 || (!row.tier && row.position === 1) ? 1 : 0;
      own.cells[s] = row;
    }
  }
  const rows = [...found.values()];
  for (const row of rows) {
    row.mean = row.sets ? row.sum / row.sets : Infinity;
    row.few = row.sets * 2 < sets.length ? 1 : 0; // a mean over few data sets says little
  }
  return rows.sort((a, b) => data.learners[a.l][1] - data.learners[b.l][1]
    || a.few - b.few || a.mean - b.mean || a.l - b.l);
}

function rowsForFiles(data, set, view, place) {
  const head = ["rank", "learner", view.metric, "low", "high", "cost", "cost_p95", "features", "budget", "budget_kind", "setting", "marks"];
  const limit = amount(data, view, place);
  const body = ranking(data, view, place).map((row) => [
    rankText(row), data.learners[row.l][0], row.quality, row.low, row.high, row.cost, row.p95, row.features,
    Number.isFinite(limit) ? limit : "", view.kind, row.at < 0 ? "" : row.curve.s?.[row.at] ?? "", set.marks[row.l] ?? "",
  ]);
  return [head, ...body];
}

function csv(data, set, view, place) {
  const cell = (value) => {
    let text = value === null || value === undefined ? "" : String(value);
    if (typeof value !== "number" && /^[=+\-@\t\r]/.test(text) && text !== "-") text = `'${text}`; // no formula
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rowsForFiles(data, set, view, place).map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

/** A booktabs table: the best tier bold. */
function latex(data, set, view, place) {
  const tex = (text) => String(text).replace(/[\\{}$&#^_~%]/g, (c) => ({
    "\\": "\\textbackslash{}", "^": "\\textasciicircum{}", "~": "\\textasciitilde{}",
  })[c] ?? `\\${c}`).replaceAll("–", "--").replaceAll("<", "\\textless{}").replaceAll(">", "\\textgreater{}");
  const rows = ranking(data, view, place);
  const lines = rows.map((row, i) => {
    const best = row.at >= 0 && (row.tier === 1 || (!row.tier && row.position === 1));
    const value = best ? `\\textbf{${quality(row.quality)}}` : quality(row.quality);
    const range = row.tier ? `[${quality(row.low)}, ${quality(row.high)}]` : "--";
    const rule = row.baseline && i > 0 && !rows.slice(0, i).some((r) => r.baseline) ? "\\midrule\n" : "";
    return `${rule}${tex(rankText(row))} & ${tex(data.learners[row.l][0])} & ${value} & ${range} & ${cost(row.cost)} \\\\`;
  });
  const limit = amount(data, view, place);
  const unit = set.unit ? ` (${set.unit})` : "";
  const within = Number.isFinite(limit) ? `${AXIS[view.kind]} at most ${cost(limit)}` : "no limit";
  const rangeHead = rows.some((row) => row.tier) ? "95\\% interval" : "";
  return `% needs \\usepackage{booktabs}\n\\begin{table}\n\\caption{${tex(set.name)}: ${tex(view.metric)} on test, ${tex(within)}.`
    + ` Points are chosen on validation data; bold: not separable from the best. Run ${tex(data.run)}.}\n`
    + `\\begin{tabular}{llrrr}\n\\toprule\nrank & learner & ${tex(view.metric)} & ${rangeHead} & cost${tex(unit)} \\\\\n\\midrule\n`
    + `${lines.join("\n")}\n\\bottomrule\n\\end{tabular}\n\\end{table}\n`;
}
