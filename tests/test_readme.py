"""What the README shows is what there is."""

import re
import shlex
from pathlib import Path
from statistics import median

import click
import pytest

from bench_core.cli import main
from bench_core.cli.app import bench as group

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_is_short_and_begins_with_how_to_get_it():
    heads = re.findall(r"^## (.*)", README, flags=re.M)
    assert len(README.splitlines()) < 180
    assert heads[0] == "Get it"
    assert len({*heads}) == len(heads)


def test_every_verb_of_the_readme_is_a_command():
    for verb in sorted(set(re.findall(r"\bbench ([a-z]+)\b", README))):
        with pytest.raises(SystemExit) as end:
            main((verb, "--help"))
        assert not end.value.code, verb


DOCUMENTS = (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
CODE = re.compile(r"^```(?:sh|console)\n(.*?)^```|^( {4}bench .*?)$", flags=re.M | re.S)
COMMAND = re.compile(r"^(?: {4}|\$ )?bench ([a-z][^|;>\\\n]*)", flags=re.M)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_of_the_documents_has_options_that_there_are(document):
    text = document.read_text(encoding="utf-8")
    shown = "\n".join(block or line for block, line in CODE.findall(text))
    for line in COMMAND.findall(shown):
        words = shlex.split(line.replace("...", ""), comments=True)
        verb = group
        with click.Context(group) as context:
            while isinstance(verb, click.Group) and words:
                verb = verb.get_command(context, words.pop(0))
        if line == "runs":  # the verb that plugins.md writes
            continue
        assert verb is not None, line
        known = {name for param in verb.get_params(context) for name in param.opts}
        asked = {word.partition("=")[0] for word in words if re.match("--?[a-zA-Z]", word)}
        assert asked <= known, f"{line}: {asked - known}"


PLAIN = {
    "anew": "again",
    "surely": "with an interval, or certainly",
    "strangers?": "third-party",
    "mend(s|ed|ing)?|heed(s|ed)?": "fix, follow",
    "rungs?": "baseline",
    "reckon(s|ed|ing)?": "compute",
    "dear(er|est)?": "expensive",
    "lone": "single",
    "sa(ys|id) of": "name the thing",
    "that there (is|are) not": "missing",
    "is no (list|number|share|frozen|store|row)": "is not a ...",
    "(Counted|Preferred|Taken|Kept) are": "subject, verb, object",
    "chain works|take away|stands? here|none is certainly": "plain words",
    "has the quality of|what .{1,20} pays for|searched alike|trained anew": "plain words",
    '"""(What|Whether|How|Who) .*': "a noun or a verb",
}
"""Words of a dialect, and better ones."""


def test_texts_are_in_plain_words():
    folders = [ROOT / name for name in ("bench_core", "plugins", "reports", "suites", "docs")]
    paths = [*ROOT.glob("*.md"), *(path for folder in folders for path in folder.rglob("*.*"))]
    found = []
    for path in paths:
        if path.suffix in (".py", ".md", ".toml", ".html", ".js", ".ipynb", ".jinja"):
            prose = path.suffix in (".md", ".ipynb") or path.name.endswith(".md.jinja")
            words = [*PLAIN, *(("beside", "nobody", "told") if prose else ())]
            dialect = rf"(?<![\w-])({'|'.join(words)})(?!\w)"
            found += [f"{path.name}: {m[0]}" for m in re.finditer(dialect, path.read_text("utf-8"))]
    assert found == []


PROSE = (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))


def paragraphs(text):
    """Paragraphs and list items, without headings, tables and code."""
    text = re.sub(r"^ *```.*?^ *```$|^<!--.*?-->$", "", text, flags=re.M | re.S)
    text = re.sub(r"^(#| *\||!\[| {4}).*$", "", text, flags=re.M)
    blocks = re.split(r"\n[ \n]*\n|\n(?= *(?:-|\d+\.) )", text)
    return [words for block in blocks if (words := " ".join(block.split()))]


@pytest.mark.parametrize("path", PROSE, ids=lambda path: path.stem)
def test_paragraphs_and_sentences_are_short(path):
    found = paragraphs(path.read_text(encoding="utf-8"))
    sentences = [s for p in found for s in re.split(r"(?<=[.!?:])\s+(?=\W*[A-Z])", p)]
    assert [p for p in found if len(p) > 600] == []
    assert median(len(sentence.split()) for sentence in sentences) <= 18


FENCED = re.compile(r"^```(\w+)\n(.*?)^```\n(.*?)(?=^```|^#|\Z)", flags=re.M | re.S)


@pytest.mark.parametrize("path", PROSE, ids=lambda path: path.stem)
def test_figures_below_an_output_are_shown_in_a_block(path):
    """A figure with decimals in the text after an output is in one of the page's blocks."""
    found = FENCED.findall(path.read_text(encoding="utf-8"))
    shown = "".join(block for _, block, _ in found)
    below = "".join(text for kind, _, text in found if kind in ("text", "console"))
    figures = re.findall(r"(?<![\w.])\d+\.\d+(?![\w.])", below)
    assert [figure for figure in figures if figure not in shown] == []


def test_every_link_of_the_documents_leads_somewhere():
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_the_site_has_every_page_of_the_documents_and_not_more_than_33():
    """``mkdocs build --strict`` in CI checks links and anchors."""
    listed = re.findall(r"- [^:]+: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), flags=re.M)
    docs = ROOT / "docs"
    assert sorted(listed) == sorted(str(p.relative_to(docs)) for p in docs.rglob("*.md"))
    assert len(listed) <= 33
