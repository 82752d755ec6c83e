"""Decimal commas and dates as numbers: of files, and of frames in Python."""

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest

from bench_core.datasets.table_options import TableOptions
from bench_core.datasets.user_arrays import array_splits
from bench_core.datasets.user_files import FileData
from bench_core.errors import InputError
from bench_core.splits import SPLITS

N = 60


def write(path, cells, separator=";"):
    """A file of this column, one of noise, and labels."""
    rows = (separator.join([str(cell), str(k * 7 % 5), str(k % 2)]) for k, cell in enumerate(cells))
    path.write_text("\n".join([separator.join(["x", "noise", "y"]), *rows]) + "\n")
    return str(path)


def column(splits, name="x"):
    """The cells of all rows, sorted: how rows are divided does not matter here."""
    j = splits.feature_names.index(name)
    return np.sort(np.concatenate([getattr(splits, part).X[:, j] for part in SPLITS]))


def read(path, **options):
    return FileData(path, label="y", **options).prepare(object(), "quick", 0, 0)


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
    made = read(write(tmp_path / "x.csv", cells), decimal=",")
    np.testing.assert_array_equal(column(made), wanted)
    quoted = write(tmp_path / "q.csv", [f'"{cell}"' for cell in cells], ",")
    np.testing.assert_array_equal(column(read(quoted, decimal=",")), wanted)
    frame = pd.DataFrame({"x": [c if c not in ("", "NA") else None for c in cells]})
    frame["noise"] = np.arange(N) * 7 % 5
    made = array_splits(frame, np.arange(N) % 2, options=TableOptions(decimal=","))
    np.testing.assert_array_equal(column(made), wanted)


def test_labels_and_text_beside_decimal_commas(tmp_path):
    path = tmp_path / "x.csv"
    rows = [f"{'Ulm' if k % 3 else 'Bonn'};{k % 50},25;{k * k},5" for k in range(N)]
    path.write_text("\n".join(["city;x;y", *rows]) + "\n")
    splits = read(str(path), decimal=",")
    labels = np.sort(np.concatenate([getattr(splits, part).y for part in SPLITS]))
    assert labels.tolist() == [k * k + 0.5 for k in range(N)]
    assert splits.feature_names == ("city=Ulm", "city=Bonn", "x")


def test_points_and_commas_in_one_column_are_refused(tmp_path):
    path = write(tmp_path / "x.csv", ["0,5", "1,5", "2.5"] * (N // 3))
    with pytest.raises(InputError, match=r"x.csv, line 4, column 'x': '2.5' has a decimal point"):
        read(path, decimal=",")
    write(tmp_path / "x.csv", ["0.25", "72.909", "2.5"] * (N // 3))  # no commas
    fault = r"'0.25' has a decimal point, but '72.909' .*line 3. would be read as 72909; .*mal='\.'"
    with pytest.raises(InputError, match=fault):
        read(path, decimal=",")
    assert len(read(path, decimal=".").train)


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
    splits = read(write(tmp_path / "x.csv", cells), dates=True)
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
    np.testing.assert_array_equal(column(read(path, dates=True)), wanted)


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
    splits = read(write(tmp_path / "x.csv", cells), dates=True)
    np.testing.assert_array_equal(column(splits), wanted)
    frame = pd.DataFrame({"x": cells})
    made = array_splits(frame, np.arange(N) % 2, options=TableOptions(dates=True))
    np.testing.assert_array_equal(column(made), wanted)
    encoding = next(e for e in splits.encodings if e.name == "x")
    np.testing.assert_array_equal(np.unique(encoding.codes(cells)), [1.25, 19796.5])
    with pytest.raises(InputError, match=r"holds dates .*: dates=True reads them as days"):
        read(write(tmp_path / "x.csv", cells))


@pytest.mark.parametrize("cells", [["24-DEC-24", "25-DEC-24"], ["1.2.24", "13.2.24"]])
def test_years_of_two_digits_are_ambiguous(cells, tmp_path):
    with pytest.raises(InputError, match=r"'[-\w.]*24' is an ambiguous date; write 2024-02-01"):
        read(write(tmp_path / "x.csv", cells * (N // 2)), dates=True)


def test_a_cell_that_is_no_date_among_dates_is_named(tmp_path):
    cells = [f"{day}" for day in WHEN]
    cells[7] = "unknown"
    with pytest.raises(InputError, match=r"x.csv, line 9, column 'x': 'unknown' is not a date"):
        read(write(tmp_path / "x.csv", cells), dates=True)


def test_objects_of_several_kinds_of_times_are_days():
    noon = datetime(2024, 3, 14, 12)
    kinds = [
        noon, noon.replace(tzinfo=UTC), pd.Timestamp(noon), None, pd.NaT,
        datetime(2024, 3, 14, 14, tzinfo=timezone(timedelta(hours=2))), noon.date(),
        datetime(1500, 1, 1),
    ]  # fmt: skip
    days = (
        [19796.5] * 3 + [np.nan] * 2 + [19796.5, 19796, -171664]
    )  # 146097 in 400 years, 25567 in 70
    cells = pd.Series(kinds * 8, dtype=object)
    made = array_splits(pd.DataFrame({"x": cells}), np.arange(64) % 2)
    np.testing.assert_array_equal(column(made), sorted32(days * 8))


def test_without_the_option_messages_name_it(tmp_path):
    with pytest.raises(
        InputError, match=r"column 'x' holds dates .*: dates=True reads them as days"
    ):
        read(write(tmp_path / "x.csv", [f"{day}" for day in WHEN]))
    with pytest.raises(InputError, match=r"'0,5'\): decimal=',' reads decimal commas"):
        read(write(tmp_path / "x.csv", [f"{k},5" for k in range(N)]))


def test_a_remedy_is_said_once_for_all_its_columns(tmp_path):
    rows = "".join(f"{k},5;{k},7;{k},9;{k % 2}\n" for k in range(N))
    (tmp_path / "x.csv").write_text("a;b;c;y\n" + rows)
    with pytest.raises(InputError) as refused:
        read(str(tmp_path / "x.csv"))
    line = str(refused.value)
    assert line.count("decimal=','") == 1
    assert "column 'a' holds text ('0,5')" in line
    assert "(also 'b', 'c')" in line


def test_dates_that_do_not_say_which_is_the_month_or_do_not_exist(tmp_path):
    both = write(tmp_path / "x.csv", ["1/2/2024", "3/4/2024"] * (N // 2))
    with pytest.raises(InputError, match=r"'1/2/2024' is an ambiguous date; write 2024-02-01"):
        read(both, dates=True)
    none = write(tmp_path / "n.csv", ["30.01.2024", "30.02.2024"] * (N // 2))
    with pytest.raises(InputError, match=r"n.csv, line 3, column 'x': '30.02.2024' is not a date"):
        read(none, dates=True)


def test_svmlight_has_neither(tmp_path):
    path = tmp_path / "x.svm"
    path.write_text("".join(f"{k % 2} 1:{k}\n" for k in range(N)))
    for option, said in (({"decimal": ","}, "decimal=','"), ({"dates": True}, "dates=True")):
        with pytest.raises(InputError, match=f"{said} is for CSV and Parquet"):
            FileData(str(path), **option).prepare(object(), "quick", 0, 0)
