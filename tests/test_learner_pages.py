"""docs/learners.md has every learner of the project, and its family's page every parameter."""

import re
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name

import pytest
from write_learner_pages import references, written

from bench_core.parameters import parameters
from bench_core.plugins import load_registry

DOCS = Path(__file__).parent.parent / "docs"
EQUATIONS = re.compile(r"<!-- equations: (\S+) -->")
ROW = re.compile(r"^\| `([\w-]+)` \| .+ \| \[([\w-]+)\]\(learners/\2\.md\) \|$", re.M)


def index():
    """Each learner of the index with its family."""
    return dict(ROW.findall((DOCS / "learners.md").read_text(encoding="utf-8")))


def registered():
    registry = load_registry()
    return sorted(
        name for name, cls in registry.learners.items() if cls.__module__.startswith("bench_")
    )


def page(learner):
    return (DOCS / f"learners/{index()[learner]}.md").read_text(encoding="utf-8")


def test_every_learner_is_in_the_index():
    assert set(registered()) - set(index()) == set()


@pytest.mark.parametrize("learner", registered())
def test_the_page_of_its_family_names_a_learner_and_each_of_its_parameters(learner):
    text = page(learner)
    names = [learner, *(p.name for p in parameters(load_registry().learners[learner]))]
    assert [name for name in names if f"`{name}`" not in text] == []


@pytest.mark.parametrize("path", sorted((DOCS / "learners").glob("*.md")), ids=lambda p: p.stem)
def test_tables_equations_and_departures_of_a_page_are_those_of_the_code(path):
    page = path.read_text(encoding="utf-8")
    assert page == written(page), "run: python tests/write_learner_pages.py"
    assert "<!-- parameters: " in page


def test_learners_of_the_index_have_their_summaries():
    page = (DOCS / "learners.md").read_text(encoding="utf-8")
    assert page == written(page), "run: python tests/write_learner_pages.py"


PAGES = [path.read_text(encoding="utf-8") for path in (DOCS / "learners").glob("*.md")]
MAPPED = sorted({name for page in PAGES for name in EQUATIONS.findall(page)})


@pytest.mark.parametrize("module", MAPPED)
def test_every_function_that_an_equation_is_mapped_to_is_there(module):
    """Names are whole, or those of the module itself or of a module in it."""
    names = references(import_module(module).__doc__ or "")
    assert names
    for name in names:
        resolve_name(name if name.startswith("bench_") else f"{module}.{name}")


CITED = sorted(set(index().values()) - {"baselines"})  # which are of no paper


@pytest.mark.parametrize("family", CITED)
def test_a_page_says_when_to_choose_what_departs_and_whose_it_is(family):
    text = (DOCS / f"learners/{family}.md").read_text(encoding="utf-8")
    assert re.search(r"\bchoose\b", text, re.I)
    assert re.search(r"\bdepartures?\b|\bwhat is from where\b", text, re.I)
    assert re.search(r"\b(19|20)\d\d\b", text)


def test_every_page_belongs_to_a_family_of_the_index():
    assert {path.stem for path in (DOCS / "learners").glob("*.md")} == set(index().values())


@pytest.mark.parametrize("path", sorted((DOCS / "learners").glob("*.md")), ids=lambda p: p.stem)
def test_every_link_of_a_page_leads_somewhere(path):
    for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target
