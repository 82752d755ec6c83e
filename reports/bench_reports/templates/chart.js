"use strict";
// The chart of one view: curves, bands, labels at line ends. Curves are steps: between two points nothing is gained.
//
// A view has the budgets of the slider's places (at). A curve has the index of its learner (l), budgets (x) and
// qualities (y) of its steps, and if known costs (c), features (f), wrong rows (w) and settings (s); "sure" has for
// each place [low, high, tier], or 0.

const GREY = "#57606a";
const INK = "#1b1f24";
const GAP = 14;
const AXIS = {
  mean: "budget: mean cost per row",
  cap: "budget: cost of every row",
};

const esc = (text) => String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

// Numbers as `wording.py` writes them.

const power = (text) => text.replace(/e([+-])(\d)$/, "e$10$2");

/** Digits as Python's "g" writes them. */
function general(value, digits) {
  const text = value.toExponential(digits - 1);
  const [head, exponent] = text.split("e").map(Number);
  if (exponent >= -4 && exponent < digits) return String(Number(text));
  return power(`${head}e${exponent < 0 ? "-" : "+"}${Math.abs(exponent)}`);
}

function quality(value) {
  if (value === null || value === undefined) return "-";
  if (value !== 0 && Math.abs(value) < 0.001) return power(value.toExponential(1));
  return Math.abs(value) < 10 ? value.toFixed(4) : general(value, 4);
}

/** An interval of qualities. */
const interval = (low, high) => (low === null ? "-" : `${quality(low)} to ${quality(high)}`);

function cost(value) {
  if (value === null || value === undefined) return "-";
  if (Math.abs(value) >= 100) return value.toFixed(0);
  if (Math.abs(value) >= 0.01 || value === 0) return value.toFixed(2);
  return general(value, 2);
}

const brief = (value) => String(Number(value.toPrecision(10)));

/** Colour, dash and mark of a learner, which are functions of its name. */
function look(data, learner) {
  const [, baseline, colour, dash, mark] = data.learners[learner];
  return {
    colour: baseline ? GREY : data.colours[colour],
    css: baseline ? "kb" : `k${colour}`,
    dash: data.dashes[dash],
    mark: data.marks[mark],
    width: baseline ? 1.2 : 1.8,
  };
}

/** The last step that a budget pays for, -1 for none. */
function held(curve, budget) {
  let low = 0;
  let high = curve.x.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (curve.x[middle] <= budget) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** A figure of the last step that a budget pays for, null without one. */
const within = (curve, values, budget) => values?.[held(curve, budget)] ?? null;

/** The budget at a place of the slider: after the last one no limit, before the first nothing. */
const amount = (view, place) => (place < 0 ? -Infinity : view.at[place] ?? Infinity);

/** The last place within a budget. */
const placeAt = (view, budget) =>
  (budget === Infinity && view.kind === "mean" ? view.at.length : view.at.filter((b) => b <= budget * (1 + 1e-9)).length - 1);

function axes(data, view, options) {
  const methods = view.curves.filter((c) => !data.learners[c.l][1]);
  const drawn = (methods.length ? methods : view.curves).filter((c) => !options.hidden?.has(c.l));
  const used = drawn.length ? drawn : view.curves;
  const sign = view.higher ? 1 : -1;
  const paid = used.flatMap((c) => c.y.filter((_, i) => c.x[i] > 0 || c.x.length === 1)); // the constant would flatten all curves
  const good = paid.map((y) => sign * y).sort((a, b) => a - b);
  const ahead = used.reduce((a, b) => (sign * b.y.at(-1) > sign * a.y.at(-1) ? b : a));
  const [low, high] = ahead.sure?.at(-1) || [];
  const sure = low === undefined || options.mini ? [] : [sign * low, sign * high];
  const best = Math.max(good[good.length - 1], ...sure);
  const kept = options.keeps ? [best - 1.6 * (best - sign * options.keeps.y)] : []; // the line has room below it
  const worst = Math.min(good[options.whole ? 0 : Math.floor(0.1 * (good.length - 1))], ...sure, ...kept);
  const pad = 0.06 * (best - worst) || 0.05 * Math.abs(best) || 0.5;
  const y = [sign * (worst - pad), sign * (best + pad)].sort((a, b) => a - b);
  const budgets = used.flatMap((c) => c.x);
  const positive = budgets.filter((b) => b > 0);
  const most = positive.length ? Math.max(...positive) : 1;
  const first = options.keeps ? Object.values(options.keeps.at).map(([budget]) => budget / 1.5) : [];
  const least = Math.max(Math.min(positive.length ? Math.min(...positive, ...first) : 0.1, most / 2), most / 1e4);
  const x = options.linear ? [0, most * 1.02] : [least, most * 1.05];
  const margin = options.mini
    ? { left: 4, right: 4, top: 4, bottom: 4 }
    : { left: 58, right: options.width < 560 ? 108 : 150, top: options.title ? 52 : 14, bottom: 46 };
  const plot = options.mini ? 72 : Math.max(options.plot ?? 320, GAP * view.curves.length);
  const height = plot + margin.top + margin.bottom;
  const scale = options.linear ? (v) => v : Math.log10;
  const room = options.width - margin.left - margin.right;
  return {
    x, y, margin, height, width: options.width, sign,
    end: options.width - margin.right,
    bottom: height - margin.bottom,
    across(budget) {
      const at = (scale(Math.max(budget, x[0])) - scale(x[0])) / (scale(x[1]) - scale(x[0]));
      return Math.round(margin.left + clamp(at, 0, 1) * room);
    },
    down(value) {
      const part = clamp((value - y[0]) / (y[1] - y[0]), -1, 2);
      return Math.round(height - margin.bottom - part * plot);
    },
  };
}

function ticks(low, high) {
  const raw = (high - low) / 5;
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * size).find((s) => s >= raw);
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high; k += 1) found.push(Number((k * step).toPrecision(12)));
  return found;
}

/** The fewest of some round numbers that are at least four, else equal steps. */
function logTicks(low, high) {
  for (const per of [[1], [1, 3], [1, 2, 5], [1, 2, 3, 5, 7], [1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8]]) {
    const found = [];
    for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); p += 1) {
      found.push(...per.map((m) => Number((m * 10 ** p).toPrecision(6))));
    }
    const inside = found.filter((v) => v >= low && v <= high);
    if (inside.length > 3) return inside;
  }
  return ticks(low, high);
}

function spread(wanted, gap, low, high) {
  const order = wanted.map((_, i) => i).sort((a, b) => wanted[a] - wanted[b] || a - b);
  const least = Math.min(gap, Math.floor((high - low) / Math.max(wanted.length - 1, 1)));
  const places = [];
  for (const i of order) places.push(Math.max(wanted[i], places.length ? places.at(-1) + least : low));
  let limit = high;
  for (let k = places.length - 1; k >= 0; k -= 1) {
    places[k] = Math.min(places[k], limit);
    limit = places[k] - least;
  }
  const found = [];
  order.forEach((i, k) => { found[i] = places[k]; });
  return found;
}

function grid(ax, view, unit, options) {
  const across = options.linear ? ticks(...ax.x) : logTicks(...ax.x);
  const down = ticks(...ax.y);
  const { left, top } = ax.margin;
  const lines = across.map((v) => `M${ax.across(v)} ${ax.bottom}v4`).join("")
    + down.map((v) => `M${left} ${ax.down(v)}H${ax.end}`).join("");
  const middle = (top + ax.bottom) / 2;
  const words = options.width < 560 ? AXIS[view.kind].replace("budget: ", "") : AXIS[view.kind] + unit;
  return `<g stroke="#d0d7de" class="rule"><path fill="none" d="M${left} ${top}V${ax.bottom}H${ax.end}${lines}"/></g>`
    + `<g fill="${GREY}" class="words">`
    + across.map((v) => `<text x="${ax.across(v)}" y="${ax.bottom + 18}" text-anchor="middle">${brief(v)}</text>`).join("")
    + down.map((v) => `<text x="${left - 6}" y="${ax.down(v) + 4}" text-anchor="end">${brief(v)}</text>`).join("")
    + `<text x="${(left + ax.end) / 2}" y="${ax.height - 8}" text-anchor="middle">${esc(words)}</text>`
    + `<text x="14" y="${middle}" text-anchor="middle" transform="rotate(-90 14 ${middle})">`
    + `${esc(view.words ?? view.metric + (ax.bottom - ax.margin.top < 200 ? "" : ` on test (${view.higher ? "higher" : "lower"} is better)`))}</text></g>`;
}

/** The band of a curve's intervals, a step from each place with an interval to the next. */
function band(ax, view, curve, kind) {
  const upper = [];
  const lower = [];
  const places = [...view.at.keys()].filter((k) => curve.sure[k]);
  const across = [...places.map((k) => ax.across(amount(view, k))), ax.end];
  places.forEach((k, i) => {
    const [low, high] = curve.sure[k].slice(0, 2).map((v) => clamp(ax.down(v), ax.margin.top, ax.bottom));
    const ends = across.slice(i, i + 2);
    upper.push(...ends.map((x) => `${x},${high}`));
    lower.unshift(...ends.map((x) => `${x},${low}`).reverse());
  });
  if (!upper.length) return "";
  return `<polygon data-band="${curve.l}" fill="${kind.colour}" fill-opacity=".14" class="${kind.css}" points="${upper.join(" ")} ${lower.join(" ")}"/>`;
}

function curveLine(ax, curve, kind, mini) {
  let line = `M${ax.across(curve.x[0])} ${ax.down(within(curve, curve.y, Math.max(curve.x[0], Math.min(ax.x[0], curve.x.at(-1)))))}`;
  let dots = "";
  curve.x.forEach((x, i) => {
    const [at, y] = [ax.across(x), ax.down(curve.y[i])];
    if (x < ax.x[0] && i + 1 < curve.x.length) return; // left of the axis
    line += `H${at}V${y}`;
    dots += `M${at} ${y}h0`;
  });
  const dash = kind.dash ? ` stroke-dasharray="${kind.dash}"` : "";
  const own = `stroke="${kind.colour}" class="${kind.css}"`;
  const points = mini ? "" : `<path ${own} stroke-width="5" stroke-linecap="round" d="${dots}"/>`;
  return `<path ${own}${dash} stroke-width="${kind.width}" d="${line}H${ax.end}"/>${points}`;
}

/** Names at the ends of curves, and of the line of the quality to keep, moved apart. */
function labels(data, ax, curves, keeps) {
  const line = keeps && inside(ax, ax.down(keeps.y)) ? [ax.down(keeps.y)] : [];
  const raw = [...curves.map((c) => ax.down(c.y.at(-1))), ...line];
  const [low, high] = [ax.margin.top, ax.bottom];
  const places = spread(raw.map((y) => clamp(y, low, high)), GAP, low, high);
  const [longest, size] = ax.width < 560 ? [15, 10] : [17, 12];
  return raw.map((_, i) => {
    const curve = curves[i];
    const kind = curve ? look(data, curve.l) : { colour: INK, css: "ink", mark: "" };
    const name = curve ? data.learners[curve.l][0] : keeps.name;
    const short = name.length > longest ? `${name.slice(0, longest - 1)}…` : name;
    const start = clamp(raw[i], low, high);
    const off = raw[i] > high ? " ↓" : raw[i] < low ? " ↑" : "";
    return `<path fill="none" stroke="${kind.colour}" class="${kind.css}" stroke-width=".8" d="M${ax.end} ${start}l10 ${places[i] - start}"/>`
      + `<text fill="${kind.colour}" class="${kind.css}" font-size="${size}" x="${ax.end + 13}" y="${places[i] + 4}">${kind.mark} ${esc(short)}${off}</text>`;
  }).join("");
}

const inside = (ax, row) => row >= ax.margin.top && row <= ax.bottom;

/** The line of the quality to keep, a ring at each model that is sure to keep it, and what the first saves. */
function keeping(data, ax, view, curves, keeps) {
  const y = ax.down(keeps.y);
  if (!inside(ax, y)) return "";
  const at = (l) => (l in keeps.at && curves.some((c) => c.l === l) ? ax.across(keeps.at[l][0]) : null);
  const rings = curves.filter((c) => at(c.l) !== null).map((c) => {
    const row = clamp(ax.down(keeps.at[c.l][1]), ax.margin.top, ax.bottom);
    const kind = look(data, c.l);
    return `<circle r="5" fill="none" stroke="${kind.colour}" class="${kind.css}" stroke-width="2" cx="${at(c.l)}" cy="${row}"/>`;
  });
  const [reference, whole] = keeps.to;
  const [from, to] = [at(keeps.from), at(reference) === null ? null : ax.across(whole)];
  const halo = 'stroke-width="3" paint-order="stroke"';
  let arrow = "";
  if (keeps.saved && from !== null && to !== null) {
    const saved = keeps.saved + (keeps.chance ? "? may be chance" : "");
    const words = ax.width < 560 ? saved : `${data.learners[keeps.from][0]}: ${saved}`;
    const low = ax.bottom - 12;
    const [width, weight] = keeps.chance ? [0.8, 400] : [1.5, 600];
    const room = from + 8 + 7 * words.length < ax.end ? `x="${from + 8}"` : `x="${ax.end - 6}" text-anchor="end"`;
    arrow = `<path fill="none" stroke="${INK}" stroke-width="${width}" d="M${from} ${y + 7}V${low}M${to} ${y + 7}V${low}M${to} ${low}H${from}m6 -4l-6 4l6 4"/>`
      + `<text ${room} y="${low - 8}" fill="${INK}" stroke="#fff" ${halo} font-weight="${weight}">${esc(words)}</text>`;
  }
  return `<g class="rings"><path fill="none" stroke="${INK}" stroke-dasharray="1 3" d="M${ax.margin.left} ${y}H${ax.end}"/>${rings.join("")}${arrow}</g>`;
}

/** The chart as SVG text, and its axes. Attributes have the colours of light paper, classes those of the page. */
function chart(data, set, view, options) {
  const keeps = set.keeps && !options.mini && view === set.views[0] ? set.keeps : null;
  const ax = axes(data, view, { ...options, keeps });
  const curves = view.curves.filter((c) => !options.hidden?.has(c.l));
  const banded = curves.filter((c) => c.sure && (options.bands || options.lead?.has(c.l)));
  const unit = set.unit ? ` in ${set.unit}` : "";
  const size = `viewBox="0 0 ${ax.width} ${ax.height}"`;
  const title = options.title
    ? `<rect width="100%" height="100%" fill="#fff"/><text x="16" y="24" font-size="16" font-weight="600" fill="#1b1f24">${esc(options.title)}</text>`
      + `<text x="16" y="42" fill="${GREY}">${esc(options.subtitle)}</text>`
    : "";
  const line = Number.isFinite(options.budget) ? `M${ax.across(options.budget)} ${ax.margin.top}V${ax.bottom}` : "";
  const cursor = options.mini || options.title ? "" : `<path class="cursor" fill="none" stroke="${GREY}" stroke-dasharray="4 3" d="${line}"/><circle class="spot" r="6" fill="none" stroke="${GREY}" stroke-width="2" cx="-99" cy="-99"/>`;
  const water = set.standIn && !options.mini
    ? `<text x="${ax.end}" y="${ax.margin.top - 3}" text-anchor="end" fill="${GREY}" class="words">stand-in data</text>`
    : "";
  // what is outside the axes is cut, with room for half a point
  const box = [ax.margin.left - 2, ax.margin.top - 2, ax.end - ax.margin.left + 4, ax.bottom - ax.margin.top + 2];
  const plot = `x="${box[0]}" y="${box[1]}" width="${box[2]}" height="${box[3]}" viewBox="${box.join(" ")}"`;
  const name = view.words ?? `${view.metric} against ${AXIS[view.kind]} on ${set.name}`;
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" ${size} width="${ax.width}" height="${ax.height}"`
    + ` role="img" aria-label="${esc(name)}" font-family="system-ui, sans-serif" font-size="12">${title}${water}`
    + (options.mini ? "" : grid(ax, view, unit, options))
    + banded.map((c) => band(ax, view, c, look(data, c.l))).join("")
    + `<svg class="lines" fill="none" ${plot}>${curves.map((c) => curveLine(ax, c, look(data, c.l), options.mini)).join("")}</svg>`
    + (keeps ? keeping(data, ax, view, curves, keeps) : "")
    + (options.mini ? "" : `<g class="ends">${labels(data, ax, curves, keeps)}</g>`) + `${cursor}</svg>`;
  return { svg, ax };
}
