"""Header and source of an exported model.

The engine is the same for all models: ``scorer.h``, ``trees.c``, then ``staged.c`` or ``policy.c``.
The program is inserted as constants and tables. It serves single rows. Models that compare the
documents of a query, and cost models without additive prices, are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from math import inf, isinf, isnan
from pathlib import Path
from typing import Any

import numpy as np

from bench_core.costs.by_row import ByRow
from bench_core.costs.model import SensorPrices, pays_by_row
from bench_core.encoding import COMMA, MISSING, NONE, YEAR_FIRST, ColumnEncoding
from bench_core.errors import UsageError
from bench_core.serving import StoredPolicy
from bench_core.serving.folder import Folder
from bench_core.serving.policy_program import PolicyProgram
from bench_core.serving.predictor import classes_of, meaning_of
from bench_core.serving.program import IN_QUERY, LINKS, REJECT, Finish, Program
from bench_core.serving.raw_rows import RawColumns
from bench_core.serving.row_state import FeatureNeeds, prices_of
from bench_core.serving.row_walk import (
    CELL,
    FIRST_PRICE,
    KEY,
    LAST_PRICE,
    LEFT,
    LEVELS,
    SEGMENT,
    Packed,
    pack,
)

FULL = "C bills each row by itself: it pays a price per query in full, not a share of it"
BY = "serve it in Python, by bench_core.serving"
_HERE = Path(__file__).parent
_SCORE = "double bench_score(const struct bench_source *source, double *spent);\n\n"
_PRICES = """ The function price,
   if it is not NULL, returns the row's price in the column of this number; NAN: the mean. Each is
   asked for once: a quoted one before the purchase, a metered one after it. A metered purchase is
   made while money is left, so that the last may exceed the cap."""
_PRICE = "\n    double (*price)(void *context, int column);"
_PRICE_NAMES = """
/* The columns of prices, by number. */
extern const char *const bench_prices[BENCH_PRICES];
"""
_SUPPORT = ("mean", "factor", "gamma", "vectors", "coefficients")


def header(folder: Folder) -> str:
    """Return the header file."""
    about, outputs, cap = folder.about, _program(folder).outputs, _cap(folder)
    what = f"{about.get('learner', 'a model')} {about.get('point', '')}"
    values = {
        "about": what.replace("*/", "* /").replace("\n", " "),
        "what": "the score"
        if outputs == 1
        else "nothing (several outputs), bench_scores fills the scores",
        "features": len(folder.encodings or folder.names),
        "meaning": meaning_of(about).replace("*/", "* /"),
        "bill": "" if pays_by_row(folder.costs) else f"\n   {FULL}.",
        "columns": "".join(_columns(folder.encodings)) or ".",
        "encoders": _encoders(folder)[0],
        "outputs": outputs,
        "cap": f"{cap:g}, the cap it was exported under" if cap < inf else "no cap",
        "score": _SCORE if outputs == 1 else "",
        **dict.fromkeys(("prices", "price", "price_names", "price_count"), ""),
        "answer": _answer_header([*map(str, classes_of(about))]),
    }
    if columns := _price_columns(folder):
        values |= {"prices": _PRICES, "price": _PRICE, "price_names": _PRICE_NAMES}
        values["price_count"] = f"\n#define BENCH_PRICES {len(columns)}"
    text = (_HERE / "scorer.h").read_text(encoding="utf-8")
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    return text


def _price_columns(folder: Folder) -> Sequence[str]:
    """Return the columns of prices by row, () if there are none."""
    return folder.about.get("price_columns", ()) if isinstance(folder.costs, ByRow) else ()


def _answer_header(classes: Sequence[str]) -> str:
    """Return the declaration of the function that answers with a class."""
    if not classes:
        return ""
    names = ", ".join(f"{k} {_shown(name)}" for k, name in enumerate(classes))
    words = f"/* The number of the class of least expected cost, by its scores: {names}. */"
    return f"\n{words}\nint bench_answer(const double *scores);\n"


def _cap(folder: Folder) -> float:
    budget = folder.about.get("budget") or {}
    return float(budget["amount"]) if budget.get("kind") == "cap" else inf


def _program(folder: Folder) -> Program | PolicyProgram:
    program = folder.program
    if isinstance(program, StoredPolicy):
        raise UsageError(
            f"C: a policy of class {type(program.policy).__name__} has no program; {BY}"
        )
    return program


def source(folder: Folder) -> str:
    """Return tables and engine. Raises UsageError if C cannot serve the model."""
    program, prices = _program(folder), prices_of(folder.costs)
    if prices is None:
        raise UsageError(f"C: costs {folder.costs.name!r} are not a sum of prices; {BY}")
    if isinstance(program, PolicyProgram):
        packed = pack(program.scores, program.unpriced)
        common = _constants(folder, prices, packed, program.scores)
        constants = {**common, **_policy_constants(program)}
        tables = [*_tree_tables(program.scores, packed), *_policy_tables(program, prices)]
        return _text(folder, constants, tables, "policy.c")
    lost = any(REJECT in (step.then, step.otherwise) for step in program.steps)
    below = lost and folder.about.get("task") == "ranking" and program.rejected == "below"
    if below or any(step.gate in IN_QUERY for step in program.steps):
        raise UsageError(
            "C: the model compares the documents of a query, but C serves single rows; "
            f"{BY} and predict_query, or export another learner (--learner NAME)"
        )
    packed = pack(program, folder.costs)
    numeric = not isinstance(program.rejected, str)
    feature_needs = FeatureNeeds(program.features, folder.costs)
    constants = {
        **_constants(folder, prices, packed, program),
        "REJECTED_HAVE": int(numeric),
        "REJECTED": number(program.rejected if numeric else 0.0),
        "LEAST": number(feature_needs.least(program)),
    }
    needs = _needs(feature_needs, prices)
    tables = [*needs, *_tree_tables(program, packed), *_stage_tables(program, packed)]
    return _text(folder, constants, tables, "staged.c")


def _text(folder: Folder, constants: dict[str, Any], tables: list[str], engine: str) -> str:
    raw = RawColumns(folder.encodings) if folder.encodings else None
    names = ", ".join(_string(name) for name in (raw.names if raw else folder.names))
    if raw is not None:
        tables = [
            *tables,
            array("int", "column_of", raw.column),
            array("int", "level_of", raw.level),
        ]
    constants |= {
        "ENCODED": int(raw is not None),
        "READABLE": len(folder.names),
        "TEXTS": int(any(column.texts for column in folder.encodings)),
        "DATES": int(any(column.kind == "date" for column in folder.encodings)),
    }
    constants["COMMAS"] = int(any(column.format == COMMA for column in folder.encodings))
    if constants["DATES"] or constants["COMMAS"]:
        constants["MISSING"] = ", ".join(map(_string, (*MISSING, NONE)))
    parts = ["trees.c", engine]
    if classes := len(classes_of(folder.about)):
        errors = folder.about.get("error_costs") or {"matrix": 1 - np.eye(classes)}
        constants["CLASSES"] = classes
        by_class = ",\n".join(_numbers(row) for row in errors["matrix"])
        tables.append(f"static const double error_costs[][CLASSES] = {{\n{by_class}\n}};")
        parts.append("answer.c")
    named = f"const char *const bench_names[BENCH_FEATURES] = {{{names}}};"
    constants["BY_ROW"] = 0
    if (columns := _price_columns(folder)) and isinstance(folder.costs, ByRow):
        costs, constants["BY_ROW"] = folder.costs, 1
        place = dict(zip(costs.priced.tolist(), costs.column.tolist(), strict=True))
        hidden = {*costs.metered.tolist()}
        tables = [
            *tables,
            array("int", "price_columns", [place.get(s, -1) for s in range(costs.sensors)]),
            array("unsigned char", "metered", [int(s in hidden) for s in range(costs.sensors)]),
        ]
        texts = ", ".join(map(_string, columns))
        named += f"\nconst char *const bench_prices[BENCH_PRICES] = {{{texts}}};"
    defined = [f"#define {name} {value}" for name, value in constants.items()]
    text = "\n".join((_HERE / name).read_text(encoding="utf-8") for name in parts)
    text = text.replace("/* constants */\n", "\n".join(defined) + "\n")
    text = text.replace("/* encoders */\n", _encoders(folder)[1])
    return text.replace("/* tables */\n", "\n".join([*tables, named]) + "\n")


def _encoders(folder: Folder) -> tuple[str, str]:
    """Return declarations and functions that encode texts, dates, and numbers with an offset."""
    declared, defined = list[str](), list[str]()
    for column, name in zip(folder.encodings, _identifiers(folder.encodings), strict=True):
        if not (column.texts or column.offset or column.format):
            continue
        takes = "const char *text" if column.texts or column.format else "double number"
        head, shown = f"float bench_encode_{name}({takes})", _shown(column.name)
        if column.texts:
            places = dict(sorted(column.places().items(), key=lambda place: isnan(place[1])))
            texts, codes = ", ".join(map(_string, places)), ", ".join(map(_float, places.values()))
            other, k = _float(column.unseen), len(places)
            body = (
                f"    static const char *const texts[] = {{{texts}}};\n"
                f"    static const float codes[] = {{{codes}}};\n"
                f"    return encode(text, texts, codes, {k}, {other});\n"
            )
            declared.append(
                f"/* The value of {shown} for a text in UTF-8; NULL: missing. */\n{head};\n\n"
            )
        else:
            value, what = "number", "a number"
            if column.kind == "date":
                value = f"days(text, {_string(column.format)})"
                forms = " or ".join(dict.fromkeys((column.format, YEAR_FIRST)))
                what = f"a date, {forms}; NULL: missing. NAN, and errno EDOM, for other texts"
            elif column.format == COMMA:
                value = "comma(text)"
                what = "a number such as 1,5; NULL: missing. NAN, and errno EDOM, for other texts"
            body = f"    return (float)({value} - {number(column.offset)});\n"
            declared.append(f"/* The value of {shown} for {what}. */\n{head};\n\n")
        defined.append(f"{head}\n{{\n{body}}}\n")
    return "".join(declared), "\n".join(defined)


def _columns(encodings: Sequence[ColumnEncoding]) -> Iterator[str]:
    """Yield the header's words on each column."""
    for k, (column, name) in enumerate(zip(encodings, _identifiers(encodings), strict=True)):
        held = {"number": "a number", "date": "days since 1970-01-01"}.get(column.kind, "text")
        less = f" minus {column.offset:.15g}" if column.offset else ""
        encoded = f", by bench_encode_{name}" if held != "a number" or less or column.format else ""
        yield f"{',' if k else ':'}\n   {k} {_shown(column.name)}: {held}{less}{encoded}"


def _shown(name: str) -> str:
    """Return a name for a comment of C."""
    return _string(name).replace("*/", "* /").replace("/*", "/ *")


def _identifiers(encodings: Sequence[ColumnEncoding]) -> list[str]:
    """Return the columns' names as identifiers of C, numbered if two are equal."""
    plain = [re.sub(r"\W", "_", column.name, flags=re.ASCII) for column in encodings]
    return [n if plain.count(n) == 1 else f"{n}_{k}" for k, n in enumerate(plain)]


def _float(value: float) -> str:
    return "NAN" if isnan(value) else f"{value:.1f}f"


def _constants(
    folder: Folder, prices: SensorPrices, packed: Packed, program: Program
) -> dict[str, Any]:
    widest = max(int(packed.nodes[:, CELL].max(initial=0)), int(_below(packed).max(initial=0)))
    levels = packed.uses[:, LEVELS]
    deepest = int(levels.max(initial=0))
    # a single depth if all trees are about as deep: the loop is then predictable
    alike = len(levels) > 0 and deepest <= 1.25 * levels.mean()
    return {
        "NARROW": f"unsigned {'short' if widest < 1 << 16 else 'int'}",
        "LEVELS": deepest if alike else 0,
        "READ": len(program.features),
        "FEATURES": max(1, len(program.features)),  # C has no empty arrays
        "WIDTH": program.outputs,
        "SENSORS": max(1, prices.sensors),
        "SPLIT": number(prices.split),
        "TREE": number(prices.tree),
        "CAP": number(_cap(folder)),
    }


def _policy_constants(program: PolicyProgram) -> dict[str, Any]:
    k, act, answer = len(program.purchases), program.each_act, program.each_answer
    return {
        "PURCHASES": k,
        "VALUES": len(program.scores.steps) - 1,
        "RATE": int(program.rule == "rate"),
        "STOP": k if program.rule == "class" else 0,
        "LEAST": number(program.least),
        "SKIP": int(program.skip),
        "ACT_SPLITS": number(act.splits),
        "ACT_TREES": number(act.trees),
        "ANSWER_SPLITS": number(answer.splits),
        "ANSWER_TREES": number(answer.trees),
    }


def _policy_tables(program: PolicyProgram, prices: SensorPrices) -> list[str]:
    priced, d, cells = program.prices, program.prices.features, program.scores.features.tolist()
    sets = [{*np.flatnonzero(row).tolist()} for row in program.purchases.sets]
    things = [*({*priced.sensors_of(f).tolist()} for f in range(d)), *sets]  # features, purchases
    free = {s for members in sets if not priced.sensor[[*members]].any() for s in members}
    served = [
        [t for t, members in enumerate(things) if s in members] for s in range(priced.sensors)
    ]
    place = {feature: c for c, feature in enumerate(cells)}
    marks = {p: place.get(d + g, -1) for g, p in enumerate(program.marked.tolist())}
    return [
        array("double", "prices", map(number, prices.sensor)),
        array("double", "weighed", map(number, priced.sensor)),
        array("int", "places", [place.get(f, -1) for f in range(d)]),
        array("int", "marks", [marks.get(p, -1) for p in range(len(sets))]),
        array("int", "needed", map(len, things)),
        *_lists("sensors", [*map(sorted, (*sets, free))]),
        *_lists("things", served),
    ]


def _below(packed: Packed) -> Any:
    """Return each node's offset to its left child; 0 at a leaf."""
    return packed.nodes[:, LEFT] - np.arange(len(packed.nodes))


def number(value: Any) -> str:
    """Format a float64 exactly."""
    value = float(value)
    if isnan(value):
        return "NAN"
    return ("-" if value < 0 else "") + "INFINITY" if isinf(value) else value.hex()


def _string(text: str) -> str:
    plain = [32 <= b < 127 and chr(b) not in '"\\?' for b in text.encode()]
    kept = [chr(b) if p else f"\\{b:03o}" for b, p in zip(text.encode(), plain, strict=True)]
    return '"' + "".join(kept) + '"'


def array(kind: str, name: str, entries: Iterable[Any]) -> str:
    """Format a table, with one entry if it is empty."""
    words = [str(entry) for entry in entries] or ["{0}" if kind.startswith("struct") else "0"]
    lines = [", ".join(words[i : i + 8]) for i in range(0, len(words), 8)]
    return f"static const {kind} {name}[] = {{\n" + ",\n".join(lines) + "\n};"


def _entry(*values: Any) -> str:
    return "{" + ", ".join(v if isinstance(v, str) else str(int(v)) for v in values) + "}"


def _numbers(values: Any) -> str:
    """Format float64 values in braces."""
    return _entry(*map(number, values))


def _needs(feature_needs: FeatureNeeds, prices: SensorPrices) -> list[str]:
    place = {f: c for c, f in enumerate(feature_needs.features)}
    tables = [
        array("int", "features", feature_needs.features),
        array("double", "prices", map(number, prices.sensor)),
    ]
    needs = [feature_needs.sensors[f] for f in feature_needs.features]
    mates = [sorted(place[m] for m in feature_needs.mates[f]) for f in feature_needs.features]
    return [*tables, *_lists("needs", needs), *_lists("mates", mates)]


def _lists(name: str, lists: Sequence[Sequence[int]]) -> list[str]:
    """Format concatenated lists, and the start of each."""
    start = array("int", f"{name}_of", np.cumsum([0, *map(len, lists)]))
    return [start, array("int", name, [x for one in lists for x in one])]


def _tree_tables(program: Program, packed: Packed) -> list[str]:
    vectors = ",\n".join(map(_numbers, packed.vectors)) or "{0}"
    steps, kernels = [], 0
    for numbers, gates, step in zip(packed.steps, packed.gates, program.steps, strict=True):
        kernel, kernels = -1, kernels + (step.kernel is not None)
        if step.kernel is not None:
            kernel = kernels - 1
        whole = *numbers[:SEGMENT], kernel, numbers[FIRST_PRICE], numbers[LAST_PRICE]
        steps.append(_entry(*whole, number(gates[0]), _numbers(gates[1:])))
    nodes = np.column_stack([packed.nodes[:, KEY], packed.nodes[:, CELL], _below(packed)])
    return [
        array("struct node", "nodes", (_entry(*node) for node in nodes.tolist())),
        array("struct leaf", "leaves", map(_numbers, packed.leaves)),
        array("struct use", "uses", (_entry(*use) for use in packed.uses.tolist())),
        f"static const double vectors[][WIDTH] = {{\n{vectors}\n}};",
        array("struct step", "steps", steps),
    ]


def _stage_tables(program: Program, packed: Packed) -> list[str]:
    columns = zip(packed.columns.tolist(), packed.factors, strict=True)
    nothing = program.nothing if program.nothing is not None else [float("nan")] * program.outputs
    kernels, supports = list[str](), list[str]()
    for step in program.steps:
        k, kernel = len(supports), step.kernel
        if kernel is not None:
            cells = np.searchsorted(program.features, kernel.features)
            kernels += [array("int", f"cells{k}", cells), array("int", f"start{k}", kernel.start)]
            for name in _SUPPORT:
                values = np.ravel(getattr(kernel, name))
                kernels.append(array("double", f"{name}{k}", map(number, values)))
            sizes = len(cells), kernel.vectors.shape[1], kernel.tile, len(kernel.gamma)
            supports.append(_entry(*sizes, *(f"{n}{k}" for n in ("cells", "start", *_SUPPORT))))
    return [
        array("struct column", "columns", (_entry(*c, *map(number, by)) for c, by in columns)),
        array("int", "reads", packed.reads),
        array(
            "struct weighted_price",
            "weighted_prices",
            (
                _entry(paid.sensor[j], paid.output[j], number(paid.weight[j]), number(paid.mean[j]))
                for paid in (step.prices for step in program.steps)
                for j in range(len(paid))
            ),
        ),
        array("struct finish", "finishes", _finishes([s.finish for s in program.steps])),
        array("double", "nothing", map(number, nothing)),
        *kernels,
        array("struct support", "supports", supports),
    ]


def _finishes(finishes: list[Finish | None]) -> list[str]:
    """Return one for each step, then the finishes that follow them; none leads to the first."""
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
