"""An exported model as C99: one header and one source, without dependencies.

The engine, ``scorer.c`` and ``scorer.h``, is the same for all models; the constants and tables that
are put into it are the program. It serves one row by itself, and refuses what compares the
documents of a query, and cost models whose prices do not add up.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, isinf, isnan
from pathlib import Path
from typing import Any

import numpy as np

from bench_core._io.files import atomic_folder
from bench_core.costs.model import SensorPrices
from bench_core.errors import UsageError
from bench_core.serving.folder import Folder
from bench_core.serving.policy_program import PolicyProgram
from bench_core.serving.program import GATES, LINKS, REJECT, Finish, Program
from bench_core.serving.row_state import FeatureNeeds, prices_of
from bench_core.serving.row_walk import CELL, KEY, LEFT, LEVELS, SEGMENT, Packed, pack

HEADER, SOURCE = "bench_model.h", "bench_model.c"
_HERE = Path(__file__).parent
_SCORE = "double bench_score(const struct bench_source *source, double *spent);\n\n"
_SUPPORT = ("mean", "factor", "gamma", "vectors", "coefficients")


def write_c(path: Path, folder: Folder) -> None:
    """Write the two files. Raises UsageError where the model cannot be served so."""
    texts = {HEADER: header(folder), SOURCE: source(folder)}
    with atomic_folder(path) as new:
        for name, text in texts.items():
            (new / name).write_text(text, encoding="utf-8")


def header(folder: Folder) -> str:
    """What a caller includes."""
    about, one, cap = folder.about, folder.program.outputs == 1, _cap(folder)
    what = f"{about.get('learner', 'a model')} {about.get('point', '')}"
    values = {
        "about": what.replace("*/", "* /").replace("\n", " "),
        "what": "the score" if one else "nothing (several outputs), bench_scores fills the scores",
        "features": len(folder.names),
        "outputs": folder.program.outputs,
        "cap": f"{cap:g}, the cap it was exported under" if cap < inf else "no cap",
        "score": _SCORE if one else "",
    }
    text = (_HERE / "scorer.h").read_text(encoding="utf-8")
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    return text


def _cap(folder: Folder) -> float:
    budget = folder.about.get("budget") or {}
    return float(budget["amount"]) if budget.get("kind") == "cap" else inf


def source(folder: Folder) -> str:
    """Tables and engine. Raises UsageError where the model cannot be served so."""
    program, prices = folder.program, prices_of(folder.costs)
    if isinstance(program, PolicyProgram):
        raise UsageError("C: the model is a policy; serve it by bench_core.serving")
    by = "serve it by bench_core.serving"
    folder.single("C")
    if prices is None:
        raise UsageError(f"C: costs {folder.costs.name!r} are no sum of prices; {by}")
    lost = any(REJECT in (step.then, step.otherwise) for step in program.steps)
    below = lost and folder.about.get("task") == "ranking" and program.rejected == "below"
    if below or any(step.gate in GATES[3:] for step in program.steps):
        raise UsageError(
            "C: the model compares the documents of a query, and C has one row; "
            f"{by} and predict_query"
        )
    packed = pack(program, folder.costs)
    constants = _constants(folder, prices, packed)
    names = ", ".join(_string(name) for name in folder.names)
    tables = [
        *_needs(FeatureNeeds(program.features, folder.costs), prices),
        *_tables(program, packed),
        f"const char *const bench_names[BENCH_FEATURES] = {{{names}}};",
    ]
    text = (_HERE / "scorer.c").read_text(encoding="utf-8")
    text = text.replace("/* constants */\n", "\n".join(constants) + "\n")
    return text.replace("/* tables */\n", "\n".join(tables) + "\n")


def _constants(folder: Folder, prices: SensorPrices, packed: Packed) -> list[str]:
    program: Any = folder.program
    given = not isinstance(program.rejected, str)
    widest = max(int(packed.nodes[:, CELL].max(initial=0)), int(_below(packed).max(initial=0)))
    levels = packed.uses[:, LEVELS]
    deepest = int(levels.max(initial=0))
    # one number where all trees are about as deep: a loop that the processor need not guess
    alike = len(levels) > 0 and deepest <= 1.25 * levels.mean()
    values = {
        "NARROW": f"unsigned {'short' if widest < 1 << 16 else 'int'}",
        "LEVELS": deepest if alike else 0,
        "FEATURES": max(1, len(program.features)),
        "SENSORS": max(1, prices.sensors),
        "SPLIT": number(prices.split),
        "TREE": number(prices.tree),
        "CAP": number(_cap(folder)),
        "REJECTED_HAVE": int(given),
        "REJECTED": number(program.rejected if given else 0.0),
    }
    return [f"#define {name} {value}" for name, value in values.items()]


def _below(packed: Packed) -> Any:
    """How far behind a node its left child is; 0 at a leaf."""
    return packed.nodes[:, LEFT] - np.arange(len(packed.nodes))


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


def _numbers(values: Any) -> str:
    """Float64 values in braces."""
    return _entry(*map(number, values))


def _needs(known: FeatureNeeds, prices: SensorPrices) -> list[str]:
    place = {f: c for c, f in enumerate(known.features)}
    found = [
        array("int", "features", known.features),
        array("double", "prices", map(number, prices.sensor)),
    ]
    needs = [known.sensors[f] for f in known.features]
    mates = [sorted(place[m] for m in known.mates[f]) for f in known.features]
    for name, lists in (("needs", needs), ("mates", mates)):
        found.append(array("int", f"{name}_of", np.cumsum([0, *map(len, lists)])))
        found.append(array("int", name, [x for one in lists for x in one]))
    return found


def _tables(program: Program, packed: Packed) -> list[str]:
    nodes = np.column_stack([packed.nodes[:, KEY], packed.nodes[:, CELL], _below(packed)])
    columns = zip(packed.columns.tolist(), packed.factors, strict=True)
    nothing = program.nothing if program.nothing is not None else [float("nan")] * program.outputs
    vectors = ",\n".join(map(_numbers, packed.vectors)) or "{0}"
    steps, kernels, supports = [], list[str](), list[str]()
    for own, gates, step in zip(packed.steps, packed.gates, program.steps, strict=True):
        k, kernel = len(supports), step.kernel
        steps.append(
            _entry(
                *own[:SEGMENT], -1 if kernel is None else k, number(gates[0]), _numbers(gates[1:])
            )
        )
        if kernel is not None:
            cells = np.searchsorted(program.features, kernel.features)
            kernels += [array("int", f"cells{k}", cells), array("int", f"start{k}", kernel.start)]
            for name in _SUPPORT:
                values = np.ravel(getattr(kernel, name))
                kernels.append(array("double", f"{name}{k}", map(number, values)))
            sizes = len(cells), kernel.vectors.shape[1], kernel.tile, len(kernel.gamma)
            supports.append(_entry(*sizes, *(f"{n}{k}" for n in ("cells", "start", *_SUPPORT))))
    return [
        array("struct node", "nodes", (_entry(*node) for node in nodes.tolist())),
        array("struct leaf", "leaves", map(_numbers, packed.leaves)),
        array("struct use", "uses", (_entry(*use) for use in packed.uses.tolist())),
        array("struct column", "columns", (_entry(*c, *map(number, by)) for c, by in columns)),
        f"static const double vectors[][BENCH_OUTPUTS] = {{\n{vectors}\n}};",
        array("int", "reads", packed.reads),
        array("struct step", "steps", steps),
        array("struct finish", "finishes", _finishes([s.finish for s in program.steps])),
        array("double", "nothing", map(number, nothing)),
        *kernels,
        array("struct support", "supports", supports),
    ]


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
        lines.append(_entry(1, LINKS.index(finish.link), onward, *line, _numbers(finish.base)))
    return lines
