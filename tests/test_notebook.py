"""The notebook of the documentation runs and prints what it shows; ``jupyter execute --inplace
docs/notebook.ipynb`` renews its outputs."""

import json
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[1] / "docs" / "notebook.ipynb"


def printed(cells):
    """Text printed by each cell, and the names of the forms in which it shows its value."""
    outputs = [one for cell in cells for one in cell.get("outputs", ())]
    texts = ["".join(one["text"]) for one in outputs if one["output_type"] == "stream"]
    return texts, [sorted(one["data"]) for one in outputs if "data" in one]


@pytest.mark.filterwarnings("ignore")  # of the kernel's libraries
def test_the_notebook_prints_what_it_shows(tmp_path, monkeypatch):
    nbformat, nbclient = map(pytest.importorskip, ("nbformat", "nbclient"))
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("BENCH_STORE", raising=False)
    shown = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    made = nbformat.reads(json.dumps(shown), as_version=4)
    where = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(made, timeout=300, kernel_name="python3", resources=where).execute()
    assert printed(made["cells"]) == printed(shown["cells"])
    assert "euro per row" in printed(shown["cells"])[0][0]
    assert (tmp_path / "results" / "bench.db").is_file()
