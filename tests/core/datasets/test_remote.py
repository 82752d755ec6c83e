"""Files by URL: in the cache once, compared with what the server says, refused in one line."""

import gzip
import hashlib
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler

import pytest
from helpers.webserver import running

from bench_core import InputError, api
from bench_core._io.text import is_url
from bench_core.datasets.data_folder import DataFolder, fetched, is_there
from bench_core.datasets.user_files import FileData
from bench_core.execution.events import silent
from bench_core.execution.work import work
from bench_core.planning.job_files import read_job, write_jobs
from bench_core.planning.request import RunRequest

fsspec = pytest.importorskip("fsspec")
pytestmark = pytest.mark.filterwarnings("ignore")  # of the services' and the clients' own

ROWS = "".join(f"{k % 2} 1:{k} 2:{(k * 7) % 5}\n" for k in range(60))
Put = Callable[[str, str], str]


@pytest.fixture
def put(monkeypatch, tmp_path):
    """Write a file into a bucket of its own; its URL. The cache is new."""
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    new_process()

    def write(name, text):
        url = f"memory://bucket/{name}"
        with fsspec.open(url, "w") as file:
            file.write(text)
        return url

    yield write
    fsspec.filesystem("memory").rm("/", recursive=True)


def new_process():
    """As in a process that has asked for nothing yet."""
    fetched.cache_clear()
    is_there.cache_clear()


def test_what_a_url_is():
    assert all(map(is_url, ("s3://b/x.csv", "https://host/x", "FILE:///x", "memory://x")))
    assert not any(map(is_url, ("x.csv", "/x://y", "C:\\x", "dask=tcp://h:1", "ftp://h/x")))


def test_a_file_is_fetched_once_and_again_when_it_has_changed(put):
    url = put("a/rows.svm", ROWS)
    first = fetched(url)
    moment = first.stat().st_mtime_ns
    assert first.read_text() == ROWS
    new_process()
    assert fetched(url).stat().st_mtime_ns == moment
    put("a/rows.svm", "1 1:1\n")
    new_process()
    assert fetched(url).read_text() == "1 1:1\n"


def test_a_sum_is_compared_whether_the_file_is_there_or_not(put):
    url, good = put("rows.svm", ROWS), hashlib.sha256(ROWS.encode()).hexdigest()
    assert fetched(f"{url}#sha256={good}").name == "rows.svm"
    with pytest.raises(InputError, match=f"its sha256 is {good}, not 00"):
        fetched(f"{url}#sha256=00")


def test_what_cannot_be_had_is_one_line(put):
    there = put("rows.svm", ROWS)
    for url in (there + ".gone", there.replace("rows.svm", "gone/rows.svm")):
        with pytest.raises(InputError, match="cannot be read") as caught:
            fetched(url)
        assert "\n" not in str(caught.value)
        assert not is_there(url)
    with pytest.raises(InputError, match=r"http://127\.0\.0\.1:9/x\.svm: cannot be read"):
        fetched("http://127.0.0.1:9/x.svm")


def test_without_fsspec_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(InputError, match=r"budget-bench\[remote\]"):
        fetched("s3://bucket/x.svm")


def test_own_files_with_their_side_cars_and_costs_may_be_urls(put):
    train = put("folder/train.svm", ROWS)
    put("folder/train.svm.query", 12 * "5\n")
    costs = put("costs.txt", "1: 5\n2: 7\n")
    data = FileData(train, task="ranking", costs=costs)
    assert data.name == "train.svm"
    splits = data.prepare(DataFolder(None), "quick", 0, 0)
    assert sum(len(part) for part in (splits.train, splits.valid, splits.test)) == 60
    assert splits.prices.everything == 12
    assert len(data.files) == 3


def test_a_publishers_folder_may_be_a_url(put):
    url = put("published/set/a.txt", "plain").removesuffix("/set/a.txt")
    with fsspec.open(f"{url}/b.txt.gz", "wb") as file:
        file.write(gzip.compress(b"packed"))
    source = DataFolder(url)
    assert source.has("set/a.txt")
    assert not source.has("c.txt")
    assert source.find("set/a.txt").read_text() == "plain"
    assert gzip.decompress(source.find("b.txt").read_bytes()) == b"packed"
    assert DataFolder(source.folder).has("b.txt")  # named by its folder here
    with pytest.raises(InputError, match=r"^\w+://\S+/published: no file c\.txt"):
        source.find("c.txt")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format, *args):
        return


def test_a_job_file_carries_the_url(tmp_path, monkeypatch):
    """Over HTTP; on the machine that does the job there is nothing but the URL."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "rows.svm").write_text(ROWS)
    with running(partial(Quiet, directory=str(tmp_path / "web"))) as address:
        request = RunRequest(
            data=(f"{address}/rows.svm",), learners=("constant",), executor="inline"
        )
        write_jobs(api.plan(request=request), request, tmp_path / "jobs", 1)
        job = read_job(tmp_path / "jobs" / "1.json")
        assert job.about["request"]["data"] == [f"{address}/rows.svm"]
        monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "elsewhere"))
        new_process()
        gone = dict.fromkeys(["/none"], *job.data.values())
        specs = {
            name: tuple(replace(spec, data="/none") for spec in getattr(job, name))
            for name in ("fits", "trials")
        }
        result = work(replace(job, data=gone, **specs), tmp_path / "1.db", silent)
    assert result.counts == {"ok": 1}
    assert [*(tmp_path / "elsewhere").rglob("rows.svm")]
