"""An exported model as C99: one header and one source, without dependencies.

The engine, ``scorer.c``, is the same for all models; the tables before it are the program. It
serves one row by itself, and refuses what compares the documents of a query, and cost models whose
prices do not add up.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, isinf, isnan
from pathlib import Path
from typing import Any

import numpy as np

from bench_core._io.files import atomic_folder
from bench_core.arrays import IntArray
from bench_core.costs.model import SensorPrices
from bench_core.errors import UsageError
from bench_core.serving.folder import Folder
from bench_core.serving.program import GATES, LINKS, REJECT, Finish, Kernel, Program
from bench_core.serving.row_state import FeatureNeeds, prices_of
from bench_core.serving.row_walk import CELL, KEY, LEFT, LEVELS, SEGMENT, Packed, pack

HEADER, SOURCE = "bench_model.h", "bench_model.c"
_ENGINE = Path(__file__).with_name("scorer.c")

_DECLARED = """\
#ifndef BENCH_MODEL_H
#define BENCH_MODEL_H

/* {about}
   One row: bench_score returns {what}, and in spent, unless NULL, what it paid. */

#define BENCH_FEATURES {features}
#define BENCH_OUTPUTS {outputs}

#ifdef __cplusplus
extern "C" {{
#endif

/* How a row's way ended: at the end of the model, at a gate that let it go, at the cap. */
enum {{ BENCH_END, BENCH_GATE, BENCH_CAP }};

/* acquire is called with all features that one more sensor yields to the model, by number, in the
   order of need and never twice for one; it sets their values, NAN where missing. Where all
   BENCH_FEATURES values are at hand, acquire is NULL and cells points to them: they are billed as
   if they had been asked for. No row costs more than cap; 0 means {cap}. */
struct bench_source {{
    void *context;
    void (*acquire)(void *context, int count, const int *features, float *values);
    const float *cells;
    double cap;
}};

/* The names of the features, by number. */
extern const char *const bench_names[BENCH_FEATURES];

{score}/* The same with BENCH_OUTPUTS scores; returns how the row's way ended. */
int bench_scores(const struct bench_source *source, double *scores, double *spent);

#ifdef __cplusplus
}}
#endif

#endif
"""
_SCORE = "double bench_score(const struct bench_source *source, double *spent);\n\n"
_TYPES = """\
struct node { int32_t key; NARROW cell, below; };
struct leaf { double value, path; };
struct use { int root, levels, output, billed; };
struct column { int cell, output, scaled; double weight, mean, factor; };
struct step {
    int first_use, last_use, first_column, last_column, first_read, last_read, carry, combine, gate,
        then, otherwise, stop_then, stop_otherwise, kernel;
    double value, bias[BENCH_OUTPUTS];
};
struct finish { int given, link, onward; double rounds, slope, intercept, base[BENCH_OUTPUTS]; };
struct support {
    int places, count, tile, groups;
    const int *cells, *start;
    const double *mean, *factor, *gamma, *vectors, *coefficients;
};
"""


def write_c(path: Path, folder: Folder) -> None:
    """Write the two files. Raises UsageError where the model cannot be served so."""
    texts = {HEADER: header(folder), SOURCE: source(folder)}
    with atomic_folder(path) as new:
        for name, text in texts.items():
            (new / name).write_text(text, encoding="utf-8")


def header(folder: Folder) -> str:
    """What a caller includes."""
    about, one = folder.about, folder.program.outputs == 1
    return _DECLARED.format(
        about=_comment(f"{about.get('learner', 'a model')} {about.get('point', '')}"),
        what="the score" if one else "nothing (several outputs), bench_scores fills the scores",
        features=len(folder.names),
        outputs=folder.program.outputs,
        cap=f"{_cap(folder):g}, the cap it was exported under" if _cap(folder) < inf else "no cap",
        score=_SCORE if one else "",
    )


def _comment(text: str) -> str:
    return text.replace("*/", "* /").replace("\n", " ")


def _cap(folder: Folder) -> float:
    budget = folder.about.get("budget") or {}
    return float(budget["amount"]) if budget.get("kind") == "cap" else inf


def source(folder: Folder) -> str:
    """Tables and engine. Raises UsageError where the model cannot be served so."""
    program, prices = folder.program, _prices(folder)
    _refuse_queries(folder)
    packed = pack(program, folder.costs)
    names = ", ".join(_string(name) for name in folder.names)
    tables = [
        *_constants(folder, prices, packed),
        _TYPES,
        *_needs(FeatureNeeds(program, folder.costs), prices),
        *_tables(program, packed),
        f"const char *const bench_names[BENCH_FEATURES] = {{{names}}};",
    ]
    return _ENGINE.read_text(encoding="utf-8").replace("/* tables */\n", "\n".join(tables) + "\n")


def _prices(folder: Folder) -> SensorPrices:
    prices = prices_of(folder.costs)
    if prices is None:
        raise UsageError(
            f"C: costs {folder.costs.name!r} are no sum of prices; serve it by bench_core.serving"
        )
    return prices


def _refuse_queries(folder: Folder) -> None:
    program, ranks = folder.program, folder.about.get("task") == "ranking"
    lost = any(REJECT in (step.then, step.otherwise) for step in program.steps)
    compares = any(step.gate in GATES[3:] for step in program.steps)
    if compares or (ranks and lost and program.rejected == "below"):
        raise UsageError(
            "C: the model compares the documents of a query, and C has one row; serve it by "
            "bench_core.serving and predict_query"
        )


def _constants(folder: Folder, prices: SensorPrices, packed: Packed) -> list[str]:
    program, given = folder.program, not isinstance(folder.program.rejected, str)
    widest = max(int(packed.nodes[:, CELL].max(initial=0)), int(_below(packed).max(initial=0)))
    values = {
        "NARROW": f"unsigned {'short' if widest < 1 << 16 else 'int'}",
        "LEVELS": _levels(packed.uses[:, LEVELS]),
        "FEATURES": str(max(1, len(program.features))),
        "SENSORS": str(max(1, prices.sensors)),
        "SPLIT": number(prices.split),
        "TREE": number(prices.tree),
        "CAP": number(_cap(folder)),
        "REJECTED_HAVE": str(int(given)),
        "REJECTED": number(program.rejected if given else 0.0),
    }
    return [f"#define {name} {value}" for name, value in values.items()]


def _below(packed: Packed) -> IntArray:
    """How far behind a node its left child is; 0 at a leaf."""
    return np.asarray(packed.nodes[:, LEFT] - np.arange(len(packed.nodes)))


def _levels(each: Any) -> str:
    """One number for all trees where they are about as deep: a loop that need not be guessed; or 0,
    where each has its own."""
    most = int(each.max(initial=0))
    return str(most) if len(each) and most <= 1.25 * each.mean() else "0"


def number(value: Any) -> str:
    """A float64 to the last bit."""
    value = float(value)
    if isnan(value):
        return "NAN"
    return ("-" if value < 0 else "") + "INFINITY" if isinf(value) else value.hex()


def _string(text: str) -> str:
    plain = [32 <= b < 127 and chr(b) not in '"\\?' for b in text.encode()]
    kept = [chr(b) if p else f"\\{b:03o}" for b, p in zip(text.encode(), plain, strict=True)]
    return '"' + "".join(kept) + '"'


def array(kind: str, name: str, entries: Iterable[Any]) -> str:
    """A table; one entry where there would be none."""
    words = [str(entry) for entry in entries] or ["{0}" if kind.startswith("struct") else "0"]
    lines = [", ".join(words[i : i + 8]) for i in range(0, len(words), 8)]
    return f"static const {kind} {name}[] = {{\n" + ",\n".join(lines) + "\n};"


def _entry(*values: Any) -> str:
    return "{" + ", ".join(v if isinstance(v, str) else str(int(v)) for v in values) + "}"


def _needs(known: FeatureNeeds, prices: SensorPrices) -> list[str]:
    place = {f: c for c, f in enumerate(known.features)}
    needs = [known.sensors[f] for f in known.features]
    mates = [sorted(place[m] for m in known.mates[f]) for f in known.features]
    found = [
        array("int", "features", known.features),
        array("double", "prices", map(number, prices.sensor)),
    ]
    for name, lists in (("needs", needs), ("mates", mates)):
        found.append(array("int", f"{name}_of", np.cumsum([0, *map(len, lists)])))
        found.append(array("int", name, [x for one in lists for x in one]))
    return found


def _tables(program: Program, packed: Packed) -> list[str]:
    nodes = np.column_stack([packed.nodes[:, KEY], packed.nodes[:, CELL], _below(packed)])
    columns = zip(packed.columns.tolist(), packed.factors, strict=True)
    nothing = program.nothing if program.nothing is not None else [float("nan")] * program.outputs
    kernels = [s.kernel for s in program.steps if s.kernel is not None]
    return [
        array("struct node", "nodes", (_entry(*node) for node in nodes.tolist())),
        array("struct leaf", "leaves", (_entry(*map(number, leaf)) for leaf in packed.leaves)),
        array("struct use", "uses", (_entry(*use) for use in packed.uses.tolist())),
        array("struct column", "columns", (_entry(*c, *map(number, by)) for c, by in columns)),
        _matrix("vectors", packed.vectors),
        *_steps(program, packed),
        array("struct finish", "finishes", _finishes([s.finish for s in program.steps])),
        array("double", "nothing", map(number, nothing)),
        *(line for k, own in enumerate(kernels) for line in _support(k, own, program.features)),
        array("struct support", "supports", (_supports(*pair) for pair in enumerate(kernels))),
    ]


def _matrix(name: str, rows: Any) -> str:
    lines = [_entry(*map(number, row)) for row in rows] or ["{0}"]
    body = ",\n".join(lines)
    return f"static const double {name}[][BENCH_OUTPUTS] = {{\n{body}\n}};"


def _steps(program: Program, packed: Packed) -> list[str]:
    steps, kernels = [], 0
    for own, gates, step in zip(packed.steps, packed.gates, program.steps, strict=True):
        kernel = -1 if step.kernel is None else kernels
        kernels += step.kernel is not None
        value, *bias = map(number, gates)
        steps.append(_entry(*own[:SEGMENT], kernel, value, _entry(*bias)))
    return [array("int", "reads", packed.reads), array("struct step", "steps", steps)]


def _finishes(finishes: list[Finish | None]) -> list[str]:
    """One for each step, then those that they lead on to: none leads to the first."""
    every, lines = list(finishes), []
    for finish in every:  # which grows
        if finish is None:
            lines.append("{0}")
            continue
        onward = 0
        if finish.onward is not None:
            onward = len(every)
            every.append(finish.onward)
        line = number(finish.rounds), number(finish.slope), number(finish.intercept)
        base = _entry(*map(number, finish.base))
        lines.append(_entry(1, LINKS.index(finish.link), onward, *line, base))
    return lines


def _support(k: int, kernel: Kernel, features: IntArray) -> list[str]:
    cells = np.searchsorted(features, kernel.features).tolist()
    found = [array("int", f"cells{k}", cells), array("int", f"start{k}", kernel.start.tolist())]
    for name in ("mean", "factor", "gamma", "vectors", "coefficients"):
        values = np.ravel(getattr(kernel, name))
        found.append(array("double", f"{name}{k}", map(number, values)))
    return found


def _supports(k: int, kernel: Kernel) -> str:
    sizes = len(kernel.features), kernel.vectors.shape[1], kernel.tile, len(kernel.gamma)
    names = ("cells", "start", "mean", "factor", "gamma", "vectors", "coefficients")
    return _entry(*sizes, *(f"{name}{k}" for name in names))
