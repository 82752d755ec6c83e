"use strict";
// The page's data as they were packed by payload.py, differences.py and pictures.py.

/** Rows of whole numbers: of each its length, its first number and what each adds; a large one is a pair of characters. */
function rowsOf(text) {
  let at = 0;
  const next = () => {
    const code = text.charCodeAt(at++);
    return code < 0xf000 ? code - 35 : (code - 0xf000) * 32768 + text.charCodeAt(at++) - 35;
  };
  const rows = [];
  while (at < text.length) {
    let sum = 0;
    rows.push(Array.from({ length: next() }, () => {
      const place = next();
      sum += place % 2 ? -(place + 1) / 2 : place / 2;
      return sum;
    }));
  }
  return rows;
}

/** Budgets of places of the slider; the last place has no limit. */
const budgetsOf = (data, view, places) =>
  places.map((k) => (k < data.shares.length ? data.shares[k] : data.shares.at(-1) * 1.01) * view.whole);

/** A cost that was packed in steps of 0.2% from that of the reference. */
const costOf = (view, step) => (step > -20000 ? Number((view.whole * Math.exp(step / 500)).toPrecision(3)) : 0);

/** The value with its packed texts where they belong; payload.py keeps those of a kind together. */
function filled(value, texts) {
  for (const [key, one] of Object.entries(value)) {
    if (one === "" && key in texts) value[key] = texts[key].shift();
    else if (one && typeof one === "object") filled(one, texts);
  }
  return value;
}

function expandedView(data, view) {
  const unpack = (key, text) => (key === "s" ? text.split("\n").map((row) => row && row.split("\t")) : rowsOf(text));
  const columns = Object.entries(view.columns).map(([key, all]) => [key, typeof all === "string" ? unpack(key, all) : all]);
  view.curves = columns[0][1].map((_, i) => Object.fromEntries(columns.map(([key, all]) => [key, all[i]?.length ? all[i] : undefined])));
  for (const c of view.curves) {
    c.l = c.l[0];
    c.y = c.y.map((y) => y / view.scale);
    if (c.k) {
      c.x = budgetsOf(data, view, c.k);
      c.c &&= c.c.map((step) => costOf(view, step));
    }
    if (!c.t) continue;
    const at = c.t.map((_, k) => c.y[held(c, amount(data, view, k))]);
    c.lo = c.lo.map((d, k) => at[k] - d / view.scale);
    c.hi = c.hi.map((d, k) => at[k] + d / view.scale);
  }
}

/** Area and regret of each learner, both with the ends of their intervals, null for what is not known. */
function expandedAreas(set) {
  const rows = rowsOf(set.reach);
  Object.entries(set.area).forEach(([l, area], i) => {
    const [scale, [low, high, regret, below, above]] = [set.views[0].scale, rows[i]];
    const ends = (value, down, up) => (down < 0 || up < 0 ? [value, null, null] : [value, value - down / scale, value + up / scale]);
    set.area[l] = [...ends(area, low, high), ...(regret === undefined ? [] : ends(regret / scale, below, above))];
  });
}

function expanded({ data, texts }) {
  filled(data, texts);
  for (const set of data.sets) {
    for (const view of set.views) expandedView(data, view);
    expandedAreas(set);
  }
  return data;
}

/** What was counted of pairs of learners, unpacked when it is first asked for. */
function pairsOf(set) {
  const pairs = set.pairs;
  for (const [key, text] of Object.entries(pairs)) {
    if (["won", "lost", "wonAt", "lostAt", "thirds"].includes(key) && typeof text === "string") pairs[key] = rowsOf(text);
  }
  return pairs;
}

// Steps of what a learner buys, unpacked when they are first asked for: budgets x, by step the percentages of sensors (b)
// and their means over groups (s), the tree of stages (t) and who reaches them (r).
function boughtOf(data, set, l) {
  const packed = set.pictures.of[l];
  if (packed.x) return packed;
  const [places] = rowsOf(packed.k);
  const sensors = rowsOf(packed.b);
  const [group] = rowsOf(set.pictures.group);
  packed.x = budgetsOf(data, set.views[0], places);
  packed.b = places.map((_, i) => sensors.map((row) => row[i]));
  packed.s = packed.b.map((row) => set.pictures.groups.map((_, g) => {
    const own = row.filter((_, k) => group[k] === g);
    return Math.round(own.reduce((a, b) => a + b, 0) / own.length);
  }));
  if (packed.t) [[packed.t], packed.r] = [rowsOf(packed.t), rowsOf(packed.r)];
  return packed;
}
