"""docs/reference/learners.md has every learner, and its family's page every parameter."""

import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from typing import Literal

import learner_pages
import pytest
from learner_pages import on_page_markdown

from bench_core import param
from bench_core.cli.catalog import section
from bench_core.parameters import parameters
from bench_core.plugins import Registry, load_registry

DOCS = Path(__file__).parent.parent / "docs" / "reference"
FAMILIES = sorted((DOCS / "learners").glob("*.md"))
EQUATIONS = re.compile(r"<!-- equations: (\S+) -->")
ROW = re.compile(r"^\| \[(\w+)\]\(learners/\1\.md\) \| (.+) \|$", re.M)
LEARNERS = load_registry().learners


@cache
def index():
    """Each learner of the index with its family."""
    rows = ROW.findall((DOCS / "learners.md").read_text(encoding="utf-8"))
    return {name: family for family, names in rows for name in re.findall(r"`([\w-]+)`", names)}


def registered():
    return sorted(name for name, cls in LEARNERS.items() if cls.__module__.startswith("bench_"))


@cache
def built(page):
    return on_page_markdown((DOCS / page).read_text(encoding="utf-8"))


def test_every_learner_is_in_the_index():
    assert sorted(index()) == registered()
    assert learner_pages.pages() == index()
    assert {path.stem for path in FAMILIES} == set(index().values())


@pytest.mark.parametrize("learner", registered())
def test_the_page_of_its_family_names_a_learner_and_each_of_its_parameters(learner):
    text = built(f"learners/{index()[learner]}.md")
    names = [learner, *(p.name for p in parameters(LEARNERS[learner]))]
    assert [name for name in names if f"`{name}`" not in text] == []


@pytest.mark.parametrize("path", FAMILIES, ids=lambda p: p.stem)
def test_pages_hold_marks_and_not_what_the_site_makes_of_them(path):
    page = path.read_text(encoding="utf-8")
    assert "| parameter |" not in page
    assert "**Departures**" not in page
    assert "<!-- " not in on_page_markdown(page)


@dataclass(frozen=True)
class Small:
    """Learns little."""

    trees: int = param(3, "how many | trees", least=1)
    rule: Literal["a", "b"] = param("a", "which rule")


@dataclass(frozen=True)
class Smaller(Small):
    trees: int = param(2, "how many | trees", least=1)
    note: str = param("", "a text")


@pytest.fixture
def two_learners(monkeypatch):
    registry = Registry(learners={"small": Small, "smaller": Smaller})
    monkeypatch.setattr(learner_pages, "load_registry", lambda: registry)


@pytest.mark.usefixtures("two_learners")
def test_a_table_has_one_row_for_learners_that_are_alike():
    assert on_page_markdown("Before\n<!-- parameters: small smaller -->\nAfter").splitlines() == [
        "Before",
        "",
        "| parameter | of | default | values | meaning |",
        "|---|---|---|---|---|",
        "| `trees` | `small` | `3` | at least 1 | how many \\| trees |",
        "| `trees` | `smaller` | `2` | at least 1 | how many \\| trees |",
        "| `rule` | all | `a` | a, b | which rule |",
        "| `note` | `smaller` | empty | a word | a text |",
        "",
        "After",
    ]
    alone = on_page_markdown("<!-- parameters: small - rule -->").strip().splitlines()
    assert alone == [
        "| parameter | default | values | meaning |",
        "|---|---|---|---|",
        "| `trees` | `3` | at least 1 | how many \\| trees |",
    ]


@pytest.mark.usefixtures("two_learners")
def test_the_index_of_the_site_has_summaries(monkeypatch):
    monkeypatch.setattr(learner_pages, "pages", lambda: {"small": "boosted"})
    row = on_page_markdown("<!-- learners -->").strip().splitlines()[-1]
    assert row == "| `small` | Learns little | [boosted](learners/boosted.md) |"


def test_sections_come_from_the_docstring(monkeypatch):
    doc = """Title.

    Equations
        f   module.f

    Departures
    - ``one`` of
      two lines

    End.
    """
    monkeypatch.setattr(learner_pages, "__doc__", doc)
    assert on_page_markdown("<!-- departures: learner_pages -->").strip().splitlines() == [
        "**Departures**",
        "",
        "- `one` of",
        "  two lines",
    ]
    text = on_page_markdown("<!-- equations: learner_pages -->").strip().splitlines()
    assert text == ["```text", "    f   module.f", "```"]
    monkeypatch.setattr(learner_pages, "__doc__", "Title.")
    with pytest.raises(ValueError, match="learner_pages has no section Departures"):
        on_page_markdown("<!-- departures: learner_pages -->")


PAGES = [path.read_text(encoding="utf-8") for path in FAMILIES]
MAPPED = sorted({name for page in PAGES for name in EQUATIONS.findall(page)})


@pytest.mark.parametrize("module", MAPPED)
def test_every_function_that_an_equation_is_mapped_to_is_there(module):
    """Names are whole, or those of the module itself or of a module in it."""
    text = "\n".join(section(import_module(module).__doc__ or "", "Equations"))
    names = re.findall(r"(?<![\w.])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", text)
    assert names
    for name in names:
        resolve_name(name if name.startswith("bench_") else f"{module}.{name}")


CITED = sorted(set(index().values()) - {"baselines"})  # which are of no paper


@pytest.mark.parametrize("family", CITED)
def test_a_page_says_when_to_choose_what_departs_and_whose_it_is(family):
    text = built(f"learners/{family}.md")
    assert re.search(r"\bchoose\b", text, re.I)
    assert re.search(r"\bdepartures?\b|\bwhat is from where\b", text, re.I)
    assert re.search(r"\b(19|20)\d\d\b", text)
