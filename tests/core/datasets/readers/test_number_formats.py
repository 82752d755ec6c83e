"""Decimal commas and dates as numbers: of files, and of frames in Python."""

from datetime import UTC, datetime, timedelta, timezone

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
    "JavaScript": (
        "Thu Mar 14 2024 08:00:00 GMT-0400 (Eastern Daylight Time)",
        "Fri Jan 02 1970 07:00:00 GMT+0100 (Central European Standard Time)",
    ),
    "Java": ("2024-03-14T13:00+01:00[Europe/Berlin]", "1970-01-02T01:00-05:00[America/New_York]"),
    "zones as words": ("2024-03-14 12:00 UT", "1970-01-02 08:00 UTC+2"),
    "mail with a name": ("14 Mar 2024 13:00:00 +0100 (CET)", "2 Jan 1970 01:00:00 -0500 EST"),
    "midnight": ("2024-03-14 12:00 PM", "1970-01-02 06:00 AM"),
}


@pytest.mark.parametrize("form", TIMES)
def test_times_of_databases_spreadsheets_and_programs(form, tmp_path):
    cells = ["", *TIMES[form] * (N // 2)]
    wanted = sorted32([np.nan, *[19796.5, 1.25] * (N // 2)])
    splits = prepared(write(tmp_path / "x.csv", cells), dates=True)
    np.testing.assert_array_equal(column(splits), wanted)
    assert "column 'x' holds dates: read as days since 1970-01-01" in splits.notes
    frame = pd.DataFrame({"x": [None, *cells[1:]]})
    made = array_splits(frame, np.arange(N + 1) % 2, options=TableOptions(dates=True))
    np.testing.assert_array_equal(column(made), wanted)
    encoding = next(e for e in splits.encodings if e.name == "x")
    np.testing.assert_array_equal(np.unique(encoding.codes(cells[1:])), [1.25, 19796.5])
    refused("'x'|dates|dates=True", prepared, write(tmp_path / "x.csv", cells))


@pytest.mark.parametrize("day", ["%Y-%m-%d", "%d.%m.%Y %H:%M", "%Y-%m-%dT%H:%M:%S", "%d-%b-%Y"])
@pytest.mark.parametrize(
    "zone", [" CET", " Europe/Berlin", "[America/New_York]", " (MESZ)", " PST"]
)
def test_dates_in_zones_without_an_offset_are_refused(zone, day, tmp_path):
    cells = [f"{datetime(2024, 3, 1) + k * timedelta(hours=7):{day}}{zone}" for k in range(N)]
    path = write(tmp_path / "x.csv", cells)
    for dates in (True, False):
        refused("'x' holds dates in time zones by name|write offsets", prepared, path, dates=dates)


UNREAD = {
    "Oracle": "%d-%b-%y %I.%M.%S.000000 %p",
    "asctime": "%a %b %d %H:%M:%S %Y",
    "date of Unix": "%a %b %d %H:%M:%S CET %Y",
    "months": "%b %Y",
    "French hours": "%d.%m.%Y %Hh%M",
    "German hours": "%d.%m.%Y %H:%M Uhr",
    "hyphen": "%d.%m.%Y - %H:%M",
    "ordinals": "%dth %B %Y",
    "other months": "%d d\u00e9c. %Y",
}


@pytest.mark.parametrize("form", UNREAD)
def test_dates_in_other_forms_never_become_codes(form, tmp_path):
    days = [datetime(2024, 1, 1, 9) + k * timedelta(days=33) for k in range(20)] * (N // 20)
    cells = [f"{day:{UNREAD[form]}}" for day in days]
    path = write(tmp_path / "x.csv", cells)
    for dates in (True, False):
        words = "'x' holds dates in a form that is not read|write 2024-02-01|dates=True"
        refused(words, prepared, path, dates=dates)


@pytest.mark.parametrize("form", ["10.{0}.1.2{0}", "Golf 20{0}", "1.{0}.0-rc1", "rue du Bac {0}"])
def test_texts_that_look_like_dates_stay_categories(form, tmp_path):
    cells = [form.format(10 + k) for k in range(20)] * (N // 20)
    splits = prepared(write(tmp_path / "x.csv", cells), dates=True)
    assert next(e for e in splits.encodings if e.name == "x").kind == "codes"


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
