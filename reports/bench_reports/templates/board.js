// The content at a budget: ranking, sentences, tables to download.

const percent = (share) => `${Number((100 * share).toPrecision(3))}%`;
const listed = (names, most = 3) => {
  const shown = names.length > most + 1 ? [...names.slice(0, most), `${names.length - most} more`] : names;
  return shown.length > 1 ? `${shown.slice(0, -1).join(", ")} and ${shown.at(-1)}` : shown[0];
};

const ties = (names, by) => `${listed(names)} ${names.length > 1 ? "tie" : "ties"} in ${by}.`;

/** The curves at a place of the slider, best first, those that cannot be had last. */
function ranking(data, view, place) {
  const limit = amount(view, place);
  const rows = view.curves.map((curve) => {
    const at = held(curve, limit);
    const [low, high, tier, first, last, over] = (at >= 0 && curve.sure?.[place]) || [null, null, 0, 0, 0];
    return {
      l: curve.l, curve, at,
      baseline: data.learners[curve.l][1],
      quality: curve.y[at] ?? null,
      cost: at < 0 ? null : curve.c?.[at],
      features: at < 0 ? null : curve.f?.[at],
      low, high, tier, first, last, over,
    };
  });
  const sign = view.higher ? -1 : 1;
  rows.sort((a, b) => (a.at < 0) - (b.at < 0) || sign * (a.quality - b.quality) || (a.cost ?? 0) - (b.cost ?? 0) || a.first - b.first);
  rows.forEach((row, i) => {
    const level = i > 0 && row.quality === rows[i - 1].quality && row.at >= 0;
    row.position = row.at < 0 ? 0 : level ? rows[i - 1].position : i + 1;
  });
  return rows;
}

function rankText(row) {
  if (row.at < 0) return "-";
  if (!row.tier) return String(row.position);
  return row.first === row.last ? String(row.first) : `${row.first}–${row.last}`;
}

/** The setting of a row. */
const settingText = ({ curve, at }) => (at < 0 || !curve.s ? "" : curve.s[at]);

/** The learner that is ahead at this place, by how much, and if significantly. */
function story(data, set, view, place) {
  const rows = ranking(data, view, place).filter((row) => row.at >= 0);
  const limit = amount(view, place);
  const share = set.reference ? ` (${percent(shareAt(view, place))} of ${set.reference}'s cost)` : "";
  const everyRow = view.kind === "cap" ? " for every row" : "";
  const when = Number.isFinite(limit) ? `Within a budget of ${cost(limit)}${everyRow}${share}` : "Without a limit";
  if (!rows.length) return `${when} no learner can predict.`;
  const name = (row) => data.learners[row.l][0];
  const base = nothingBeats(view, rows);
  const bases = rows.filter((row) => base && row.baseline && row.quality === base.quality).map((row) => data.learners[row.l][0]);
  const [top, ...others] = base ? [base] : rows;
  const range = top.tier ? ` (${data.level}: ${interval(top.low, top.high)})` : "";
  let text = `${when}, ${base ? `nothing beats ${bases.length > 1 ? "the baselines" : "the baseline"} ${listed(bases)}` : `${name(top)} is ahead`}: ${view.metric} ${quality(top.quality)}${range}${top.cost === undefined ? "" : ` at a cost of ${cost(top.cost)} on test`}.`;
  const level = others.filter((row) => row.tier === 1);
  const next = others.find((row) => row.tier > 1) ?? others[0];
  if (next) {
    const gap = Math.abs(top.quality - next.quality);
    if (!top.tier) text += ` ${name(next)} is next, ${quality(gap)} behind; the uncertainty was not measured.`;
    else {
      if (level.length) text += ` ${ties(level.map(name), view.metric)}`;
      const sure = `(significant at ${data.level})`;
      if (!level.length) text += ` ${name(top)} beats all others in ${view.metric} ${sure}; ${name(next)} is next, ${quality(gap)} behind.`;
      else if (next.tier > 1) text += ` ${name(top)} beats ${name(next)} in ${view.metric} by ${quality(gap)} ${sure}.`;
    }
  }
  return text;
}

/** Ranks of these learners on one data set, equals at their mean: by area where no limit is set and areas are known, else by quality. */
function averageRanks(set, view, rows, names, whole) {
  const higher = view.higher ? 1 : -1;
  const of = new Map(rows.map((row) => [row.l, row]));
  const value = (l) => higher * (whole ? set.areas[l] : of.get(l).quality);
  const values = names.map(value);
  return values.map((v) => 1 + values.filter((w) => w > v).length + (values.filter((w) => w === v).length - 1) / 2);
}

// Mean ranks over data sets at a share of the reference's cost, of learners with a result on all of them: those first, best first,
// then baselines, then learners that lack a result; the same rule as `over_datasets` in Python.
function overall(data, sets, viewOf, share) {
  const ranked = sets.map((s) => {
    const view = viewOf(data.sets[s]);
    return ranking(data, view, placeAt(view, share)).filter((row) => row.at >= 0);
  });
  const there = ranked.map((rows) => new Set(rows.map((row) => row.l)));
  const names = data.learners.map((_, l) => l).filter((l) => there.length && there.every((own) => own.has(l)));
  const areas = sets.map((s) => share === Infinity && viewOf(data.sets[s]) === data.sets[s].views[0]
    && names.every((l) => l in data.sets[s].areas));
  const whole = areas.some(Boolean) && names.length > 1;
  const ranks = sets.map((s, k) => averageRanks(data.sets[s], viewOf(data.sets[s]), ranked[k], names, areas[k]));
  const apart = data.apart[names.length - 2] / Math.sqrt(sets.length);
  const rows = data.learners.map((name, l) => {
    const at = names.indexOf(l);
    const own = names.length > 1 && at >= 0 ? ranks.map((r) => r[at]) : null;
    const cells = [];
    sets.forEach((s, k) => {
      const row = ranked[k].find((one) => one.l === l);
      if (!row) return;
      cells[s] = { rank: own?.[k], lead: whole ? own?.[k] === Math.min(...ranks[k]) : row.tier ? row.tier === 1 : row.position === 1 };
    });
    return { l, cells, baseline: name[1], lacks: own ? 0 : 1, has: cells.filter(Boolean).length,
      mean: own ? own.reduce((a, b) => a + b, 0) / own.length : Infinity, firsts: cells.filter((c) => c?.lead).length };
  });
  const order = (a, b) => (a.mean === b.mean ? 0 : a.mean - b.mean) || (data.learners[a.l][0] < data.learners[b.l][0] ? -1 : 1);
  const unbeaten = sets.filter((_, k) => nothingBeats(viewOf(data.sets[sets[k]]), ranked[k]));
  return { whole, apart, unbeaten, ranked: names.length, sets: sets.length,
    rows: rows.sort((a, b) => a.lacks - b.lacks || a.baseline - b.baseline || order(a, b)) };
}

/** The baseline that no learner beats, if there is one. */
function nothingBeats(view, rows) {
  const base = rows.find((row) => row.baseline);
  return base && !rows.some((row) => !row.baseline && (view.higher ? row.quality > base.quality : row.quality < base.quality)) ? base : null;
}

/** Who is first on most data sets at this share, among those that tie by Nemenyi's test; as `overall_conclusion` in Python. */
function overallStory(data, found, share) {
  const when = Number.isFinite(share) ? `Within ${percent(share)} of the reference's cost` : found.whole ? "Over all budgets" : "Without a limit";
  const rows = found.rows.filter((row) => !row.lacks);
  const name = (row) => data.learners[row.l][0] + (row.baseline ? " (a baseline)" : "");
  if (rows.length < 2) return `${when}, no two learners have a result on all ${found.sets} data sets.`;
  const none = found.unbeaten.length;
  if (none === found.sets) return `${when}, nothing beats the baselines on any of the ${none} data sets.`;
  const least = Math.min(...rows.map((row) => row.mean));
  const tied = rows.filter((row) => row.mean - least <= found.apart);
  const [top] = [...tied].sort((a, b) => a.baseline - b.baseline || b.firsts - a.firsts || a.mean - b.mean);
  const others = tied.filter((row) => row !== top).map(name);
  const ahead = tied.find((row) => row.mean === least);
  return `${when}, ${name(top)} is ${found.whole ? "first" : "best or tied"} on ${top.firsts} of ${found.sets} data sets; its mean rank among ${rows.length} learners is ${top.mean.toFixed(2)}. `
    + `${others.length ? ties(others, "mean rank") : "No other learner ties in mean rank."}${least < top.mean ? ` ${name(ahead)} has the best mean rank, ${least.toFixed(2)}.` : ""}${none ? ` On ${none} of ${found.sets} nothing beats a baseline.` : ""}`;
}

/** Whether rows stand in the order of the board: where the page opens, and without a limit. */
const inOrder = (set, view, place) => view === set.views[0] && [set.opens, view.at.length].includes(place);

/** The rows in the order of the board, else best first, baselines last. */
const ordered = (set, view, place, rows) => [...rows].sort(inOrder(set, view, place)
  ? (a, b) => view.curves.indexOf(a.curve) - view.curves.indexOf(b.curve) : (a, b) => a.baseline - b.baseline);

const filed = (data, set, view, place) => ordered(set, view, place, ranking(data, view, place));

/** Figures as the page shows them; columns that are empty, but for low and high, are left out. */
function rowsForFiles(data, set, view, place) {
  const head = ["quality_rank", "learner", view.metric, "low", "high", "cost", "features", "budget", "budget_kind", "setting", "marks"];
  const limit = amount(view, place);
  const figure = (value, shown) => (value === null || value === undefined ? "" : Number(shown(value)));
  const body = filed(data, set, view, place).map((row) => [
    rankText(row), data.learners[row.l][0], ...[row.quality, row.low, row.high].map((v) => figure(v, quality)),
    figure(row.cost, cost), figure(row.features, brief),
    Number.isFinite(limit) ? figure(limit, cost) : "", view.kind, settingText(row), set.marks[row.l] ?? "",
  ]);
  const kept = head.map((_, i) => i < 6 || body.some((row) => row[i] !== ""));
  return [head, ...body].map((row) => row.filter((_, i) => kept[i]));
}

function csv(data, set, view, place) {
  const cell = (value) => {
    let text = value === null || value === undefined ? "" : String(value);
    if (typeof value !== "number" && /^[=+\-@\t\r]/.test(text) && text !== "-") text = `'${text}`; // no formula
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rowsForFiles(data, set, view, place).map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}
