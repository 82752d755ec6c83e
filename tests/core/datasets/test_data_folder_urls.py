"""A URL in place of a file or folder is refused in one line, which says how to get the file."""

from pathlib import Path

import pytest

from bench_core import UsageError
from bench_core.datasets.data_folder import DataFolder, local_path
from bench_core.datasets.user_files import FileData

REMEDY = r": a URL; download the file first \(curl -LO URL\) and name it here$"


@pytest.mark.parametrize("name", ["https://host/x.csv", "s3://b/x.svm", "FILE:///x"])
def test_a_url_is_refused_and_the_remedy_named(name):
    for call in (local_path, DataFolder, lambda own: FileData(own).files):
        with pytest.raises(UsageError, match=f"^{name}{REMEDY}"):
            call(name)


def test_paths_are_no_urls():
    for name in ("x.csv", "/x://y", "C:\\x", "a:b"):
        assert local_path(name) == Path(name)
