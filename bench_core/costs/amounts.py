"""Prices as people and spreadsheets write them: ``1.234,50 €``, ``EUR 12.-``, ``5 ms``."""

import math
import re
from collections.abc import Sequence
from typing import Any

from bench_core.errors import InputError

PRICE_WORDS = {"cost", "costs", "price", "prices", "fee", "fees"}
_UNIT_WORDS = {"euro", "euros", "dollars", "cents", "ns", "us", "µs", "ms", "seconds"}
_CURRENCIES = {"AUD", "BRL", "CAD", "CHF", "CNY", "CZK", "DKK", "EUR", "GBP", "HUF", "INR", "JPY"}
_CURRENCIES |= {"KRW", "MXN", "NOK", "NZD", "PLN", "RUB", "SEK", "SGD", "TRY", "USD", "ZAR"}
# price (EUR), price [ms], price €
BRACKETS = re.compile(r"[(\[]\s*(?:in\s+)?([^)\]]*[^)\]\d\s][^)\]]*?)\s*[)\]]|([$€£¥])")
SIGN = rf"[$€£¥]|{'|'.join(sorted(_CURRENCIES))}"
_PRICE = re.compile(
    rf"({SIGN})?\s*([-+−]?(?:\d(?:[.,'’\s]?\d)*|[.,]\d+)(?:[eE][-+]?\d+)?)(?:[.,][-–—]+)?"
    rf"\s*({SIGN}|[^\W\d_]{{1,8}}\.?(?:/[^\W\d_]{{1,8}})?)?"
)
_SPACED = re.compile(r"[-+]?\d{1,3}(?:['’\s]\d{3})+(?:[.,]\d+)?")
_GROUPED = re.compile(r"[-+]?[1-9]\d{0,2}[.,]\d{3}")  # 1,234: other prices show which mark it is


def is_empty(cell: Any) -> bool:
    """True for a missing cell."""
    return cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell))


def is_price(cell: Any) -> bool:
    """True for a number, or a text of a number and perhaps a unit."""
    if isinstance(cell, str):
        return _PRICE.fullmatch(cell.strip()) is not None
    return not isinstance(cell, bool) and not is_empty(cell) and hasattr(cell, "__float__")


def unit_of_title(title: str) -> str:
    """Unit in the title of a column of prices: ``price (EUR)``, ``price in EUR``, ``price_eur`` or
    ``EUR``; "" if it has none."""
    if match := BRACKETS.search(title) or re.search(r"\sin\s+([^\d\s].*?)\s*$", title):
        return next(filter(None, match.groups()), "")
    for word in re.split(r"[\W_]+", title):
        if word.upper() in _CURRENCIES:
            return word.upper()
        if word.lower() in _UNIT_WORDS:
            return word
    is_code = re.fullmatch(r"[A-Z]{3}", title.strip()) and title.strip() != "FEE"
    return title.strip() if is_code else ""


def amounts(costs: Sequence[tuple[str, Any]]) -> tuple[list[Any], str]:
    """Return costs, with locations, as numbers if they are texts of numbers (others unchanged), and
    their unit.

    ``0,50`` and ``1.234,50`` show that commas are decimal, ``1,234.50`` that points are. Raises
    InputError for ``1,234`` if nothing shows it, for two decimal marks, and for two units.
    """
    units: dict[str, str] = {}  # first location of each unit
    numbers: dict[int, str] = {}
    for k, (place, cost) in enumerate(costs):
        text = re.sub(r"\s+#.*", "", cost).strip() if isinstance(cost, str) else ""
        if match := _PRICE.fullmatch(text):
            units.setdefault(match[1] or match[3] or "", place)
            number = match[2].replace("−", "-")
            spaced = _SPACED.fullmatch(number)
            numbers[k] = re.sub(r"['’\s]", "", number) if spaced else number
    without = units.pop("", "")
    if len(units) > 1:
        (first, _), (other, place) = [*units.items()][:2]
        raise InputError(f"{place}: a price in {other} where others are in {first}; convert it")
    unit = next(iter(units), "")
    if unit and without and not re.fullmatch(SIGN, unit):
        raise InputError(f"{without}: a price without {unit!r}, which others have; write all alike")
    decimal: dict[str, tuple[str, str]] = {}  # first price that shows a decimal mark
    for k, number in numbers.items():
        if (mark := _decimal_mark(number)) and not _GROUPED.fullmatch(number):
            decimal.setdefault(mark, (costs[k][0], number))
    if len(decimal) > 1:
        (_, first), (place, other) = decimal.values()
        raise InputError(f"{place}: {other} and {first} have different decimal marks; correct one")
    mark = next(iter(decimal), "")
    point, thousands = (",", "[.]") if mark == "," else (".", ",")
    form = rf"[-+]?(\d*|\d{{1,3}}({thousands}\d{{3}})+)([{point}]\d+)?([eE][-+]?\d+)?"
    values = [cost for _, cost in costs]
    for k, number in numbers.items():
        if not mark and _GROUPED.fullmatch(number):
            large, small = re.sub("[.,]", "", number), f"{float(number.replace(',', '.')):g}"
            small += "0" * (_GROUPED.fullmatch(small) is not None)
            raise InputError(
                f"{costs[k][0]}: {number} may be {large} or {small}; write one of these"
            )
        if re.fullmatch(form, number):
            values[k] = float(re.sub(thousands, "", number).replace(point, "."))
    return values, unit


def _decimal_mark(number: str) -> str:
    """Decimal mark that a number shows, "" if it has no mark or none fits."""
    digits = re.sub(r"[^.,]", "", number)
    if not digits:
        return ""
    mark, other = digits[-1], ",."[digits[-1] == ","]
    if digits.count(mark) == 1:
        return mark
    return "" if other in digits else other  # 1.234.567
