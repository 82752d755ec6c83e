"""Files of random grammars, read here by naive readers: nothing misread, one line for each fault.

60 files of each format in the default run, thousands in the slow one.
"""

import bz2
import gzip
import lzma
import random
import warnings
from datetime import UTC, datetime

import numpy as np
import pytest

from bench_core.datasets.readers.svmlight import read_svmlight
from bench_core.datasets.table_options import TableOptions
from bench_core.datasets.user_data import read_parts
from bench_core.datasets.user_files import read_part
from bench_core.errors import InputError

SEEDS = [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 103))]
FILES = 20  # of each seed and format
PACKERS = (bytes, bytes, bytes, gzip.compress, bz2.compress, lzma.compress)
MISSING = ("", "NA", "?", "nan", "NULL", "N/A", "<NA>")
FORMS = (
    "%Y-%m-%d", "%Y/%m/%d %H:%M", "%Y-%m-%dT%H:%M:%S+0000", "%Y-%m-%d %H:%M:%S.%f UTC", "%d.%m.%Y",
    "%d.%m.%Y %H:%M", "%d-%b-%Y", "%d%b%Y:%H:%M:%S", "%d %B %Y", "%m/%d/%Y %I:%M %p",
    "%a, %d %b %Y %H:%M:%S +0000",
)  # fmt: skip
SIGNS = (
    "\u2212{}", "${}", "{}%", "{} \u20ac", "({})", "{}-", "{}.5 kg", "{}:30", "'{}", "EUR {}.50",
    "{} mg/dl", "\u00a3 {}", "{}\u00a0%", "0x{}F", "{},5",
    "np.float64({}.5)", "np.int64({})", "Decimal('{}.25')", "tensor({}.5, device='cpu')",
)  # fmt: skip


def number(draw):
    return draw.choice([
        lambda: str(draw.randint(-99, 10**6)), lambda: f"{draw.gauss(0, 9):.4f}",
        lambda: f"{draw.gauss(0, 1):.3e}", lambda: "3.4028234e38", lambda: f"+{draw.random()}",
        lambda: ".5", lambda: "7.", lambda: "-0", lambda: "1E-42",
    ])()  # fmt: skip


def column(draw, kind, rows):
    """Cells of a column of this kind: number, word, date, truth or signs."""
    if kind == "date":
        form = draw.choice(FORMS)
        days = [draw.randint(0, 2 * 10**9) // 60 * 60 for _ in range(rows)]
        cells = [datetime.fromtimestamp(day, UTC).strftime(form) for day in days]
        cells[0] = datetime(2001, 1, 31, tzinfo=UTC).strftime(form)  # a day above 12
    elif kind == "signs":
        form = draw.choice(SIGNS)
        return [form.format(k + 10) for k in range(rows)]
    else:
        make = {
            "number": lambda: number(draw),
            "word": lambda: draw.choice(["red", "dark blue", "T1", "a;b", "x, y", 'say "no"', "é"]),
            "truth": lambda: draw.choice(["True", "false", "TRUE"]),
        }[kind]
        cells = [make() for _ in range(rows)]
    return [draw.choice(MISSING) if draw.random() < 0.1 else cell for cell in cells[:-2]] + cells[
        -2:
    ]


def table(draw):
    """A CSV file with at most one fault."""
    rows, mark = draw.randint(30, 60), draw.choice(",;\t|")
    kinds = [draw.choice(("number", "word", "date", "truth")) for _ in range(draw.randint(1, 4))]
    if draw.random() < 0.2:
        kinds.append("signs")
    ends = ["", "", f"{mark} net", " [m]"]
    names = [f"{kind} {j}" + draw.choice(ends) for j, kind in enumerate(kinds)]
    if draw.random() < 0.2:
        names[0] = names[0].replace(" ", "\n", 1)
    columns = [*(column(draw, kind, rows) for kind in kinds), [str(k % 2) for k in range(rows)]]
    always = draw.random() < 0.3

    def line(cells):
        return mark.join(map(written, cells))

    def written(cell):
        quote = always or any(c in cell for c in (mark, '"', "\n")) or draw.random() < 0.05
        cell = '"' + cell.replace('"', '""') + '"' if quote else cell
        return draw.choice(["", "", "", " "]) + cell + draw.choice(["", "", "", " "])

    header = mark.join(written(name) for name in [*names, "y"])
    lines = [line(cells) for cells in zip(*columns, strict=True)]
    at, fault = (
        draw.randrange(2, rows),
        draw.choice(["none"] * 5 + ["cut", "more", "again", "footer"]),
    )
    if fault == "cut":
        lines[at] = line([cells[at] for cells in columns][:-1])
    elif fault == "more":
        lines[at] += f"{mark}7"
    elif fault == "again":
        lines.insert(at, header)
    elif fault == "footer":
        lines.append(f"{rows} rows")
    lines.insert(0, header)
    if fault == "none" and draw.random() < 0.2:
        lines = [text + mark for text in lines]
    if draw.random() < 0.3:
        lines.insert(draw.randrange(1, len(lines)), draw.choice(["", "  "]))
    return draw.choice(["\n", "\r\n"]).join([*lines, ""])


def records(text, mark):
    """Lines and cells of a CSV file, character by character."""
    cells, cell, quoted, first, line = [], "", None, 1, 1
    for c in text.replace("\r\n", "\n"):
        if quoted and c == '"':
            quoted = False
        elif quoted or c not in (mark, "\n", '"'):
            cell += c
        elif c == '"' and quoted is None and not cell.strip():
            cell, quoted = "", True
        elif c == '"':
            cell, quoted = cell + c, True  # written twice
        else:
            cells.append(cell.strip())
            cell, quoted = "", None
        line += c == "\n"
        if c == "\n" and not quoted:
            if cells != [""]:
                yield first, cells
            cells, first = [], line


def meaning(name, cell):
    """The value of a cell in a column of this name."""
    kind = name.split()[0]
    if cell in MISSING:
        return "" if kind == "word" else np.nan
    if kind == "word":
        return cell
    if kind == "truth":
        return float(cell.lower() == "true")
    if kind == "number":
        return float(cell)
    for form in FORMS:
        try:
            day = datetime.strptime(cell, form).replace(tzinfo=UTC)
        except ValueError:
            continue
        return (day - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() / 86400
    raise AssertionError(cell)


def place_of_fault(names, rows):
    """Words that the one line must have, "" if the file is right."""
    again = [line for line, cells in rows if cells == names]
    if again:
        return f"line {again[0]} repeats the header"
    for line, cells in rows:
        if len(cells) != len(names):
            return f"line {line}: {len(cells)} cells where the header has {len(names)}"
    signs = [name for name in names if name.startswith("signs")]
    return f"column {signs[0]!r} holds text" if signs else ""


@pytest.fixture(autouse=True)
def _errors_of_libraries():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def packed(draw, text, path):
    path.write_bytes(draw.choice(PACKERS)(draw.choice(["", "\ufeff"]).encode() + text.encode()))
    return path


@pytest.mark.parametrize("seed", SEEDS)
def test_tables_of_a_random_grammar(seed, tmp_path):
    outcomes = []
    for k in range(FILES):
        draw = random.Random(f"table {seed} {k}")
        text = table(draw)
        path = packed(draw, text, tmp_path / f"{k}.csv")
        separator = next(c for c in reversed(text.partition("y")[0].rstrip('" ')) if c in ",;\t|")
        (_, names), *rows = records(text, separator)
        if not names[-1] and not any(cells[-1] for _, cells in rows):
            names, rows = names[:-1], [(line, cells[:-1]) for line, cells in rows]
        names = [" ".join(name.split("\n")) for name in names]
        rows = [(n, [" ".join(c.split("\n")) for c in cells]) for n, cells in rows]
        fault = place_of_fault(names, rows)
        outcomes.append(fault == "")
        options = TableOptions(label="y", dates=True, keep_column=tuple(names))
        if fault:
            with pytest.raises(InputError) as refused:
                read_parts({"train": read_part(path, options)}, names)
            assert fault in str(refused.value), text
            assert "\n" not in str(refused.value)
            continue
        part = read_parts({"train": read_part(path, options)}, names)["train"]
        assert part.columns == tuple(names[:-1]), text
        assert part.labels.tolist() == [float(cells[-1]) for _, cells in rows]
        for j, name in enumerate(names[:-1]):
            expected = np.array([meaning(name, cells[j]) for _, cells in rows])
            cells = part.frame[name].to_numpy()
            if name.startswith("word"):
                assert cells.tolist() == expected.tolist()
            else:
                np.testing.assert_allclose(cells, expected.astype(cells.dtype), 1e-7, err_msg=name)
    assert 0 < sum(outcomes) < FILES


def ranking(draw):
    """An SVMlight file with at most one fault."""
    lines, queries = [], draw.random() < 0.5
    for k in range(draw.randint(5, 25)):
        indices = sorted(draw.sample(range(1, 30), draw.randint(0, 6)))
        cells = [f"{j}:{draw.choice([number(draw), 'nan', 'NaN'])}" for j in indices]
        label = draw.choice(["0", "1", "-1", "+2", "1.5", "3e0"])
        gap = draw.choice([" ", " ", "\t", "  "])
        query = [f"qid:{k // 3}"] if queries else []
        end = draw.choice(["", "", " ", " # 4:5 qid:1", "#"])
        lines.append(gap.join([label, *query, *cells]) + end)
    fault = draw.choice([
        *[""] * 12, "2.0:3", "+2:3", "2e0:3", "0:1", "-1:4", "31", "31:", "31:x", "31:inf", "qid:8",
        "31:1e39", "31:1_0", "31 :5", "31:5:6", "\u0663:1", "29:1 28:1", "32:1 32:2", "31:0x1",
    ])  # fmt: skip
    at = draw.randrange(len(lines))
    before, hash_sign, comment = lines[at].partition("#")
    lines[at] = f"{before} {fault} {hash_sign}{comment}" if fault else lines[at]
    for text in ("", "# a line", "   "):
        if draw.random() < 0.2:
            lines.insert(draw.randrange(len(lines)), text)
    return draw.choice(["\n", "\r\n"]).join([*lines, ""])


def rows_of(text):
    """Labels, query ids and cells of an SVMlight file, or the number of its first faulty line."""
    rows, lines = [], []
    for line, content in enumerate(text.splitlines(), start=1):
        label, *cells = content.partition("#")[0].split() or [""]
        if not label:
            continue
        query = None
        if cells and cells[0].startswith("qid:"):
            query = int(cells.pop(0)[4:])
        found = {}
        for cell in cells:
            index, colon, value = cell.partition(":")
            plain = index.isascii() and index.isdecimal() and int(index) > max(found, default=0)
            digits = value.lower().replace("nan", "0").replace("e", "0").replace("_", "x")
            digits = digits.translate(dict.fromkeys(map(ord, "+-.0123456789"), ""))
            if not (plain and colon) or digits or not value or abs(float(value)) > 3.5e38:
                return line
            found[int(index)] = float(value)
        rows.append((float(label), query, found))
        lines.append(line)
    queries = [query for _, query, _ in rows]
    if None in queries and any(query is not None for query in queries):
        return lines[queries.index(None)]
    return rows


@pytest.mark.parametrize("seed", SEEDS)
def test_svmlight_of_a_random_grammar(seed, tmp_path):
    right = 0
    for k in range(FILES):
        draw = random.Random(f"svmlight {seed} {k}")
        text = ranking(draw)
        path = packed(draw, text, tmp_path / f"{k}.svm")
        rows = rows_of(text)
        if isinstance(rows, int):
            with pytest.raises(InputError, match=rf"svm, line {rows}: ") as refused:
                read_svmlight(path)
            assert "\n" not in str(refused.value)
            continue
        right += 1
        found = read_svmlight(path)
        expected = np.zeros((len(rows), max(max(cells, default=0) for *_, cells in rows)))
        for row, (_, _, cells) in enumerate(rows):
            for index, value in cells.items():
                expected[row, index - 1] = value
        np.testing.assert_array_equal(found.X, expected.astype(np.float32))
        assert found.y.tolist() == [label for label, *_ in rows]
        ids = None if found.qids is None else np.repeat(found.qids, found.queries.sizes).tolist()
        assert ids == (None if rows[0][1] is None else [query for _, query, _ in rows])
    assert 0 < right < FILES
