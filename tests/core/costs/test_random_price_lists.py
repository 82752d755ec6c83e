"""Price lists of a random grammar: all are read as they were written, or refused in one line.

The writer knows the prices, so nothing of the reader is needed to judge it. ``ambiguous`` lists
have two readings by construction and must be refused.
"""

import csv
import io
import json
import random
import warnings
from decimal import Decimal

import pandas as pd
import pytest

from bench_core.api.arguments import costs_of
from bench_core.costs.cost_file import cost_model, cost_text
from bench_core.costs.shipped import MODELS
from bench_core.errors import InputError

WORDS = (
    "age", "TSH", "web visits", "Größe", "distance, km", "a:b", "x|y", "smoker?", "age*bmi", "T3",
    "price", "name", "no", '5" pipe', "#visits", "cost per day", "it's", "2019", "7 days", "a;b",
)  # fmt: skip
NAMES = {
    "words": lambda rng, d: rng.sample(WORDS, d),
    "from 1": lambda rng, d: [str(k) for k in range(1, d + 1)],
    "from 0": lambda rng, d: [str(k) for k in range(d)],
    "f": lambda rng, d: [f"f{k}" for k in range(1, d + 1)],
    "years": lambda rng, d: [str(y) for y in sorted(rng.sample(range(1990, 2030), d))],
    "codes": lambda rng, d: [f"V{k}" for k in rng.sample(range(100), d)],
    "some dropped": lambda rng, d: [str(k) for k in sorted(rng.sample(range(1, 3 * d), d))],
}
FEATURES = ("feature", "name", "Merkmal", "Test", "variable", "column", "Analyse", "index")
PRICES = {"cost": "cost", "price (EUR)": "EUR", "price_eur": "EUR", "price in EUR": "EUR",
          "Preis (EUR)": "EUR", "EUR": "EUR", "Preis": "cost", "fee": "cost", "cost [ms]": "ms",
          "cost_ms": "ms", "Price (US$)": "US$"}  # fmt: skip
EXTRA = {
    "supplier": lambda rng, n: [rng.choice(["own", "ACME", "lab"]) for _ in range(n)],
    "note": lambda rng, n: [rng.choice(["", "ask", "x y"]) for _ in range(n)],
    "Kommentar": lambda rng, n: [f"text {k}" for k in range(n)],
}


class List:
    """A random list: names of the data, their prices, and rows of cells as text."""

    def __init__(self, seed):
        rng = self.rng = random.Random(seed)
        d = rng.randint(2, 9)
        self.kind = rng.choice([*NAMES])
        self.names = NAMES[self.kind](rng, d)
        steps = rng.choice(["1", "0.5", "0.01", "250.25", "125", "0.125"])
        self.prices = {n: Decimal(steps) * rng.randint(1, 40) for n in self.names}
        rows = [*self.prices.items()]
        if self.kind in ("words", "codes") and rng.random() < 0.4:
            rows += [(name, Decimal(7)) for name in rng.sample(["city", "zip code", "urn"], 2)]
        if rng.random() < 0.6:
            rng.shuffle(rows)
        if rng.random() < 0.2:
            rows.sort(key=lambda row: row[1])
        self.rows = rows
        self.feature = rng.choice(FEATURES)
        self.price = rng.choice([*PRICES])
        self.unit = PRICES[self.price]
        self.numbered = self.ambiguous = False

    def table(self):
        """Titles and columns, in a random order of columns."""
        rng, n = self.rng, len(self.rows)
        columns = [(self.feature, [name for name, _ in self.rows])]
        columns.append((self.price, [price for _, price in self.rows]))
        if rng.random() < 0.3:
            rng.shuffle(columns)
        for title in rng.sample([*EXTRA], rng.choice([0, 0, 1, 2])):
            columns.insert(rng.randint(0, len(columns)), (title, EXTRA[title](rng, n)))
        self.numbered = rng.random() < 0.4
        if self.numbered:
            numbers = [*range(first := rng.choice([0, 1]), n + first)]
            if rng.random() < 0.5:
                rng.shuffle(numbers)
            title = rng.choice(["", "No", "index", "Unnamed: 0", "Nr."])
            columns.insert(0, ("" if title == self.feature else title, numbers))
        titles = [title for title, _ in columns]
        return titles, [*map(list, zip(*(cells for _, cells in columns), strict=True))]


def written(value, decimal, group):
    """A price with a decimal mark and perhaps marks for thousands."""
    text = f"{value:,f}" if group else f"{value:f}"
    if decimal == ",":
        return text.translate({ord(","): ".", ord("."): ","})
    return text


def two_readings(texts):
    """True if all marks in these numbers are between digits as marks for thousands are."""
    marked = [text for text in texts if "," in text or "." in text]
    return bool(marked) and all(
        len(parts := text.replace(",", ".").split(".")) == 2
        and len(parts[1]) == 3
        and len(parts[0]) <= 3
        and parts[0] != "0"
        for text in marked
    )


def as_text(made):
    """A file of lines."""
    rng = made.rng
    titles, rows = made.table()
    separator = rng.choice([",", ";", "\t", "|"])
    decimal, group = rng.choice([".", ","]), rng.random() < 0.3
    sign = rng.choice(["", "", "", "€ {}", "{} €"])
    at = titles.index(made.price)
    if sign and made.unit == "cost":
        made.unit = "€"
    elif made.unit != "EUR":
        sign = ""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=separator, lineterminator=rng.choice(["\n", "\r\n"]))
    header = rng.random() < 0.8 or len(titles) > 2
    if header:
        writer.writerow(titles)
    elif PRICES[made.price] != "cost":
        made.unit = "€" if sign else "cost"
    texts = []
    for cells in rows:
        texts.append(written(cells[at], decimal, group))
        cells[at] = (sign or "{}").format(texts[-1])
        writer.writerow(cells)
        if rng.random() < 0.1:
            out.write(rng.choice(["\n", "# a comment\n", "  \n"]))
    made.ambiguous = two_readings(texts)
    begin = "sep=;\n" if separator == ";" and rng.random() < 0.2 else ""
    return begin + out.getvalue()


def as_pairs(made):
    mark = made.rng.choice([":", ",", ";", "\t", ", "])
    quoted = [
        f'"{name.replace(chr(34), chr(34) * 2)}"' if set(name) & set('":,;\t|') else name
        for name, _ in made.rows
    ]
    made.unit = "cost"
    made.ambiguous = two_readings([f"{price:f}" for _, price in made.rows])
    pairs = zip(quoted, made.rows, strict=True)
    return "".join(f"{name}{mark}{price:f}\n" for name, (_, price) in pairs)


def number(price):
    return int(price) if price == int(price) else float(price)


def read(made, folder):
    """The cost model of a list in a random form."""
    rng = made.rng
    form = rng.choice(["table", "table", "table", "pairs", "json", "records", "toml", "parquet",
                       "frame", "series", "index", "rows", "mapping"])  # fmt: skip
    path = folder / "list.csv"
    if form in ("table", "pairs"):
        text = as_text(made) if form == "table" else as_pairs(made)
        path.write_text(text, encoding=rng.choice(["utf-8", "utf-8-sig"]), newline="")
    elif form in ("json", "toml"):
        made.unit = "cost"
        values = {name: number(price) for name, price in made.rows}
        path = path.with_suffix(f".{form}")
        lines = [f"{json.dumps(name)} = {value}" for name, value in values.items()]
        path.write_text(json.dumps(values) if form == "json" else "\n".join(lines))
    elif form in ("series", "index", "mapping"):
        made.unit = "cost"
        given = pd.Series({name: number(price) for name, price in made.rows})
        if form != "series":
            given = given.to_frame("cost") if form == "index" else given.to_dict()
    else:
        titles, rows = made.table()
        rows = [[number(c) if isinstance(c, Decimal) else c for c in cells] for cells in rows]
        frame = pd.DataFrame(rows, columns=titles)
        given = frame.sample(frac=1, random_state=1)
        if "index" not in titles:
            given = given.reset_index(drop=rng.random() < 0.5)
        made.numbered |= form == "frame"
        if form == "records":
            path = path.with_suffix(".json")
            path.write_text(frame.to_json(orient="records"))
        elif form == "parquet":
            frame.to_parquet(path)
        elif form == "rows":
            given = [titles, *rows]
    in_memory = form in ("series", "index", "mapping", "frame", "rows")
    return cost_model(costs_of(given) if in_memory else cost_text(path), made.names, None, MODELS)


def check(seed, folder):
    """Read one list; True if it was refused."""
    made = List(seed)
    line = ""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            costs = read(made, folder)
        except InputError as error:
            line = str(error)
    if line:
        numbers = made.numbered and made.names[0].isdecimal()  # two columns of numbers
        assert made.ambiguous or numbers, f"{seed}: {line}"
        assert "\n" not in line
        assert "may be" in line or "both hold names of the data" in line
        return True
    truth = {name: float(price) for name, price in made.prices.items()}
    found = dict(zip(made.names, costs.feature_price().tolist(), strict=True))
    assert found == pytest.approx(truth, rel=1e-12), seed
    assert costs.unit == made.unit, seed
    assert not made.ambiguous, seed
    return False


def test_random_lists_are_read_as_written(tmp_path):
    refused = [check(seed, tmp_path) for seed in range(60)]
    assert 1 <= sum(refused) <= 6


@pytest.mark.slow
def test_many_random_lists_are_read_as_written(tmp_path):
    refused = [check(seed, tmp_path) for seed in range(60, 1500)]
    assert sum(refused) < 0.1 * len(refused)
