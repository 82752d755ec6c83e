"""Decimal commas and dates as numbers: of files, and of frames in Python."""

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
from helpers.kit import every, prepared, refused, table

from bench_core.datasets.table_options import TableOptions
from bench_core.datasets.user_arrays import array_splits

N = 60


def write(path, cells, separator=";"):
    """A file of this column, one of noise, and labels."""
    rows = (separator.join([str(cell), str(k * 7 % 5), str(k % 2)]) for k, cell in enumerate(cells))
    return table(path, separator.join(["x", "noise", "y"]), rows)


def column(splits):
    return np.sort(every(splits, "x"))


def sorted32(numbers):
    return np.sort(np.array(numbers, dtype=np.float32))


COMMAS = {
    "0,5": 0.5,
    "-1,25": -1.25,
    "3": 3.0,
    "1.234": 1234.0,
    "12.345.678,5": 12345678.5,
    "1 234,5": 1234.5,
    "2\u00a0000": 2000.0,
    "1,5e3": 1500.0,
    "": np.nan,
    "NA": np.nan,
}


def test_decimal_commas_are_read(tmp_path):
    cells = [*COMMAS] * (N // len(COMMAS))
    wanted = sorted32([COMMAS[cell] for cell in cells])
    made = prepared(write(tmp_path / "x.csv", cells), decimal=",")
    np.testing.assert_array_equal(column(made), wanted)
    quoted = write(tmp_path / "q.csv", [f'"{cell}"' for cell in cells], ",")
    np.testing.assert_array_equal(column(prepared(quoted, decimal=",")), wanted)
    frame = pd.DataFrame({"x": [c if c not in ("", "NA") else None for c in cells]})
    frame["noise"] = np.arange(N) * 7 % 5
    made = array_splits(frame, np.arange(N) % 2, options=TableOptions(decimal=","))
    np.testing.assert_array_equal(column(made), wanted)


def test_labels_and_text_beside_decimal_commas(tmp_path):
    rows = [f"{'Ulm' if k % 3 else 'Bonn'};{k % 50},25;{k * k},5" for k in range(N)]
    splits = prepared(table(tmp_path / "x.csv", "city;x;y", rows), decimal=",")
    assert sorted(every(splits)) == [k * k + 0.5 for k in range(N)]
    assert splits.feature_names == ("city=Ulm", "city=Bonn", "x")


DAYS = {
    "iso": ("%Y-%m-%d", "ISO"),
    "points": ("%d.%m.%Y", "day first"),
    "day, month": ("%d/%m/%Y", "day first"),
    "month, day": ("%m/%d/%Y", "month first"),
}
WHEN = [date(1969, 12, 31), date(2000, 2, 29), date(2024, 3, 14), date(1970, 1, 1)] * (N // 4)


@pytest.mark.parametrize("form", DAYS)
def test_dates_are_days_since_1970(form, tmp_path):
    cells = [f"{day:{DAYS[form][0]}}" for day in WHEN]
    cells[0] = ""
    wanted = sorted32([np.nan, *((day - date(1970, 1, 1)).days for day in WHEN[1:])])
    splits = prepared(write(tmp_path / "x.csv", cells), dates=True)
    np.testing.assert_array_equal(column(splits), wanted)
    assert "column 'x' holds dates: read as days since 1970-01-01" in splits.notes
    frame = pd.DataFrame({"x": [None, *cells[1:]]})
    splits = array_splits(frame, np.arange(N) % 2, options=TableOptions(dates=True))
    np.testing.assert_array_equal(column(splits), wanted)


def test_dates_with_types_and_times_are_fractions_of_days(tmp_path):
    noon = [datetime(2024, 3, 14, 12, tzinfo=UTC), datetime(1970, 1, 2, 6, tzinfo=UTC)] * (N // 2)
    wanted = sorted32([19796.5, 1.25] * (N // 2))  # 54 years of 365 days, 13 leap days, 73 days
    series = {
        "zones": pd.Series(noon),
        "plain": pd.Series(noon).dt.tz_localize(None),
        "objects": pd.Series([when.replace(tzinfo=None) for when in noon], dtype=object),
    }
    for values in series.values():
        made = array_splits(pd.DataFrame({"x": values}), np.arange(N) % 2)  # unasked
        assert "column 'x' holds dates: read as days since 1970-01-01" in made.notes
        np.testing.assert_array_equal(column(made), wanted)
    path = write(tmp_path / "x.csv", [f"{when:%Y-%m-%d %H:%M}" for when in noon])
    np.testing.assert_array_equal(column(prepared(path, dates=True)), wanted)


TIMES = {
    "PostgreSQL": ("2024-03-14 13:00:00+01", "1970-01-02 04:00:00-02"),
    "ISO basic offset": ("2024-03-14T13:00+0100", "1970-01-02T06:00Z"),
    "BigQuery": ("2024-03-14 12:00:00 UTC", "1970-01-02 06:00:00.000 UTC"),
    "logs": ("2024-03-14 12:00:00,000", "1970-01-02 06:00:00,000"),
    "slashes": ("2024/03/14 12:00", "1970/1/2 6:00"),
    "German": ("14.03.2024 12:00", "2.1.1970 06:00:00"),
    "British": ("14/03/2024 12:00", "02/01/1970 06:00"),
    "American": ("3/14/2024 12:00 PM", "1/2/1970 6:00:00 a.m."),
    "Oracle": ("14-MAR-2024 12:00:00", "02-JAN-1970 06:00:00"),
    "SAS": ("14MAR2024:12:00:00", "02JAN1970:06:00:00.00"),
    "Apache": ("14/Mar/2024:12:00:00 +0000", "02/Jan/1970:07:00:00 +0100"),
    "mail": ("Thu, 14 Mar 2024 12:00:00 GMT", "Fri, 2 Jan 1970 06:00:00 +0000"),
    "words": ("March 14, 2024 12:00", "January 2, 1970 06:00"),
    "midnight": ("2024-03-14 12:00 PM", "1970-01-02 06:00 AM"),
}


@pytest.mark.parametrize("form", TIMES)
def test_times_of_databases_spreadsheets_and_programs(form, tmp_path):
    cells = [*TIMES[form]] * (N // 2)
    wanted = sorted32([19796.5, 1.25] * (N // 2))
    splits = prepared(write(tmp_path / "x.csv", cells), dates=True)
    np.testing.assert_array_equal(column(splits), wanted)
    frame = pd.DataFrame({"x": cells})
    made = array_splits(frame, np.arange(N) % 2, options=TableOptions(dates=True))
    np.testing.assert_array_equal(column(made), wanted)
    encoding = next(e for e in splits.encodings if e.name == "x")
    np.testing.assert_array_equal(np.unique(encoding.codes(cells)), [1.25, 19796.5])
    refused("'x'|dates|dates=True", prepared, write(tmp_path / "x.csv", cells))


def test_objects_of_several_kinds_of_times_are_days():
    noon = datetime(2024, 3, 14, 12)
    kinds = [
        noon, noon.replace(tzinfo=UTC), pd.Timestamp(noon), None, pd.NaT,
        datetime(2024, 3, 14, 14, tzinfo=timezone(timedelta(hours=2))), noon.date(),
        datetime(1500, 1, 1),
    ]  # fmt: skip
    # 146097 days in 400 years, 25567 in 70
    days = [19796.5] * 3 + [np.nan] * 2 + [19796.5, 19796, -171664]
    cells = pd.Series(kinds * 8, dtype=object)
    made = array_splits(pd.DataFrame({"x": cells}), np.arange(64) % 2)
    np.testing.assert_array_equal(column(made), sorted32(days * 8))
