"""Files by URL from services that speak S3's and Google Cloud Storage's protocols, over HTTP.

Needs ``pip install s3fs "moto[s3,server]" gcsfs gcp-storage-emulator``, and is skipped without.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bench_core import InputError, api
from bench_core.datasets import remote
from bench_core.datasets.data_folder import DataFolder
from bench_core.execution.events import silent
from bench_core.execution.work import work
from bench_core.planning.job_files import read_job, write_jobs
from bench_core.planning.request import RunRequest

ROWS = "".join(f"{k % 2} 1:{k} 2:{(k * 7) % 5}\n" for k in range(60))
Put = Callable[[str, str], str]
for needed in ("s3fs", "gcsfs", "moto", "gcp_storage_emulator"):
    pytest.importorskip(needed, reason=f"{needed} is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")  # of the services' and the clients' own


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, str]]:
    from moto.server import ThreadedMotoServer

    service = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    service.start()
    host, port = service.get_host_and_port()
    known = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "test")
    yield known | {"AWS_DEFAULT_REGION": "us-east-1", "AWS_ENDPOINT_URL": f"http://{host}:{port}"}
    service.stop()


@pytest.fixture(scope="module")
def gs() -> Iterator[dict[str, str]]:
    from gcp_storage_emulator.server import create_server

    service = create_server("127.0.0.1", 0, in_memory=True)
    service.start()
    host, port = service._api._httpd.server_address
    yield {"STORAGE_EMULATOR_HOST": f"http://{host}:{port}"}
    service.stop()


@pytest.fixture(params=["s3", "gs"])
def put(request: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Put:
    """Write a file into a bucket of its own; its URL."""
    kind = request.param
    for name, text in request.getfixturevalue(kind).items():
        monkeypatch.setenv(name, text)
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    new_process()
    import fsspec

    bucket = hashlib.sha256(str(tmp_path).encode()).hexdigest()[:20]
    fsspec.filesystem(kind).mkdir(bucket)

    def write(name: str, text: str) -> str:
        url = f"{kind}://{bucket}/{name}"
        with fsspec.open(url, "w") as file:
            file.write(text)
        return url

    return write


def new_process() -> None:
    """As in a process that has asked for nothing yet: clients keep listings, too."""
    import gcsfs
    import s3fs

    remote.fetched.cache_clear()
    remote.is_there.cache_clear()
    for client in (s3fs.S3FileSystem, gcsfs.GCSFileSystem):
        client.clear_instance_cache()


def test_a_file_is_fetched_once_and_again_when_it_has_changed(put: Put) -> None:
    url = put("a/rows.svm", ROWS)
    first = remote.fetched(url)
    moment = first.stat().st_mtime_ns
    assert first.read_text() == ROWS
    new_process()
    assert remote.fetched(url).stat().st_mtime_ns == moment
    put("a/rows.svm", "1 1:1\n")
    new_process()
    assert remote.fetched(url).read_text() == "1 1:1\n"


def test_a_sum_is_compared(put: Put) -> None:
    url, good = put("rows.svm", ROWS), hashlib.sha256(ROWS.encode()).hexdigest()
    assert remote.fetched(f"{url}#sha256={good}").read_text() == ROWS
    with pytest.raises(InputError, match="its sha256 is"):
        remote.fetched(f"{url}#sha256=00")


def test_what_is_not_there_is_one_line(put: Put) -> None:
    there = put("rows.svm", ROWS)
    for url in (there + ".gone", there.replace("rows.svm", "gone/rows.svm")):
        with pytest.raises(InputError, match="cannot be read") as caught:
            remote.fetched(url)
        assert "\n" not in str(caught.value)
        assert not remote.is_there(url)


def test_a_publishers_folder_may_be_a_bucket(put: Put) -> None:
    url = put("published/set/a.txt", "plain")
    source = DataFolder(url.removesuffix("/set/a.txt"))
    assert source.has("set/a.txt")
    assert not source.has("set/b.txt")
    assert source.find("set/a.txt").read_text() == "plain"


def test_a_job_is_done_from_a_bucket(put: Put, tmp_path: Any) -> None:
    url = put("rows.svm", ROWS)
    request = RunRequest(data=(url,), learners=("constant",), executor="inline")
    write_jobs(api.plan(request=request), request, tmp_path / "jobs", 1)
    new_process()
    result = work(read_job(tmp_path / "jobs" / "1.json"), tmp_path / "1.db", silent)
    assert result.counts == {"ok": 1}
