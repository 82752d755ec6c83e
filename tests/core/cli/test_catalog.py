import re

import pytest
from bench_datasets.covertype import Forest
from helpers.kit import assert_line

from bench_core.cli.catalog import LISTED, fitted
from bench_core.plugins import PluginInfo, Registry


@pytest.mark.parametrize(
    ("kind", "one"),
    [
        ("learners", "gbrt"),
        ("datasets", "breast-cancer"),
        ("suites", "quickstart"),
        ("metrics", "ndcg@5"),
        ("costs", "per-query"),
        ("reports", "html"),
        ("plugins", "core"),
    ],
)
def test_each_kind_is_one_row_a_line_with_the_name_first(bench, kind, one):
    ended = bench("list", kind).ok()
    assert one in [line.split()[0] for line in ended.out.splitlines()]


def test_learners_need_about_two_lines_each_on_a_narrow_terminal(on_terminal):
    lines = on_terminal("list", "learners")
    assert len(lines) < 115
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    assert "Gradient boosted trees, ignoring cost. " in text  # all tasks
    assert "for rows of low confidence (binary, multiclass). " in text
    assert "a learner without brackets takes all: binary, multiclass, ranking, regression." in text


def test_help_names_the_kinds_that_there_are(bench):
    text = " ".join(bench("--help").out.split())
    kinds = re.search(r" List (.*?)\.", text)[1]
    assert re.split(", | or ", kinds) == [*LISTED]


def test_plugins_show_where_they_come_from_and_their_version(bench):
    rows = [line.split() for line in bench("list", "plugins").out.splitlines()]
    (row,) = [row for row in rows if row[0] == "core"]
    assert row == ["core", "budget-bench", "0.1.0", "bench_core.planning.shipped", "loaded"]


@pytest.fixture
def broken(monkeypatch):
    info = PluginInfo("theirs", "their-package", "2.3", "theirs.bench", "ImportError: no gpu")
    monkeypatch.setattr("bench_core.cli.options.registry", lambda *given: Registry(plugins=[info]))


@pytest.mark.usefixtures("broken")
def test_a_plugin_that_does_not_load_is_a_row_with_its_error(bench):
    ended = bench("list", "plugins").ok()
    assert "theirs  their-package  2.3      theirs.bench  failed: ImportError: no gpu" in ended.out


@pytest.mark.usefixtures("broken")
def test_other_lists_mention_plugins_that_do_not_load(bench):
    assert "theirs" in bench("list", "learners").err
    assert bench("list", "learners", "--quiet").err == ""


SHOWN = {
    "toy -p mine": (
        "toy: learner, plugin mine",
        "Parameters (--set toy.columns=VALUE; a list is a grid):",
        "  columns: a whole number, default 2\n      how many columns to add up",
    ),
    "multiscale": (
        "Options (--set multiscale.folder=VALUE):",
        '  eps: one of shared, printed, default "shared"\n      a split on a value',
    ),
    "quickstart": ("quickstart: suite, ", "[learners.miser]"),
    "ndcg@7": ("ndcg@7: metric, higher is better",),
    "per-query": (
        "per-query: cost model, plugin core",
        "are paid once per query",
        'model = "per-query"',
        "names of features",  # of its key
    ),
    "sensor": ("sensor: cost model", "a row pays each sensor it bought once", "In a cost file:"),
    "html": ("written to: .html, .htm",),
}


@pytest.mark.parametrize("words", SHOWN)
def test_show_tells_what_a_name_stands_for(words, bench, material):
    shown = bench("show", *words.split()).out
    assert [text for text in SHOWN[words] if text not in shown] == []
    assert not re.search(r"``|\([nsd], |\w\[\w+\]", shown)  # for programmers


def test_show_tells_which_files_of_a_data_set_are_there(bench, tmp_path):
    (tmp_path / "letter-recognition.data").write_text("")
    shown = bench("show", "letters", "--data-dir", str(tmp_path), "--kind", "dataset").out
    assert "  found    letter-recognition.data" in shown
    missing = bench("show", "letters", "--data-dir", str(tmp_path / "no"), "--kind", "dataset").out
    assert "  missing  letter-recognition.data" in missing
    assert ("bench data fetch letters" in shown, "bench data fetch letters" in missing) == (0, 1)


@pytest.mark.parametrize(
    ("name", "licence"),
    [("nine-llms-mmlu", "none stated"), ("routellm-mmlu", "Apache-2.0"), ("llmrouter", "MIT")],
)
def test_show_says_which_licence_a_publisher_states(name, licence, bench):
    assert f"  licence: {licence}" in bench("show", name).out.splitlines()
    assert "licence" not in bench("show", "letters", "--kind", "dataset").out


def test_data_sets_are_listed_with_whether_their_files_are_there(bench, tmp_path):
    (tmp_path / "letter-recognition.data").write_text("")
    (tmp_path / "covtype.data").write_text("")
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "covtype.data.gz").write_text("")
    ended = bench("list", "datasets", "--data-dir", str(tmp_path))
    lines = [re.split(r"  +", line) for line in ended.out.splitlines()]
    found = {line[0]: line[3] for line in lines}
    names = ("data set", "letters", "pima", "digits", "yahoo-sim", "forest")
    assert [found[name] for name in names] == [
        "files", "present", "absent", "none needed", "generated", "ambiguous",
    ]  # fmt: skip
    assert str(tmp_path) in ended.err
    assert bench("list", "datasets", "--quiet").err == ""


def test_a_data_set_that_raises_does_not_hide_the_others(bench, monkeypatch):
    def complete(self, source):
        raise RuntimeError("no")

    monkeypatch.setattr(Forest, "complete", complete)
    ended = bench("list", "datasets", "--data-dir", ".").ok()
    assert re.search(r"^forest .*  unknown  ", ended.out, flags=re.M)
    assert re.search(r"^letters .*  absent  ", ended.out, flags=re.M)


@pytest.mark.parametrize("words", [("run", "--data", "clicks"), ("show", "clicks")])
def test_an_unknown_data_set_names_the_file_that_could_not_be_read(bench, tmp_path, words):
    (tmp_path / "datasets.toml").write_text("[clicks")
    ended = bench(*words, "--data-dir", ".")
    assert ended.status == 2
    assert_line(ended.err.splitlines()[-1], "unknown|'clicks'|datasets.toml: not a TOML file")
    assert "breast-cancer" not in ended.err  # no list of all names drowns it


def test_show_says_how_to_get_files_that_only_a_person_can_get(bench, tmp_path):
    shown = bench("show", "yahoo", "--data-dir", str(tmp_path), "--kind", "dataset").out
    assert "fetch" not in shown
    assert shown.rstrip().endswith(f"(a licence) and put them into {tmp_path / 'yahoo'}")


def test_show_of_a_name_that_a_suite_shares_names_the_suite_or_shows_the_one_asked_for(bench):
    both = bench("show", "yahoo").out
    assert "yahoo: data set" in both
    assert both.endswith("yahoo: suite, 'bench show yahoo --kind suite'\n")
    assert "[learners" in bench("show", "yahoo", "--kind", "suite").out
    assert "yahoo: suite" not in bench("show", "yahoo", "--kind", "dataset").out


def test_output_goes_to_a_file_instead(bench, tmp_path):
    printed = bench("list", "metrics").out
    ended = bench("list", "metrics", "-o", "metrics.txt")
    assert ended.out == ""
    assert (tmp_path / "metrics.txt").read_text() == printed


def test_learners_to_start_with_are_first_and_baselines_last(bench):
    ended = bench("list", "learners")
    names = [line.split()[0] for line in ended.out.splitlines()][1:]
    assert names[:5] == ["gbrt", "budget-boosting", "cegb", "miser", "budget-prune"]
    assert set(names[-4:]) == {"constant", "random-order", "cheapest-first", "greedy-order"}
    assert "start with gbrt, budget-boosting" in ended.err
    families = [line.split("  ")[1:] for line in ended.out.splitlines()[6:]]
    kinds = [next(filter(None, cells)).strip() for cells in families]
    assert kinds == sorted(kinds, key=lambda kind: (kind == "baselines", kind))
    assert len({*kinds}) == 10


def test_long_lines_are_broken_between_words():
    assert fitted("  one two three\nfour", 11) == "  one two\n  three\nfour"


@pytest.mark.parametrize(
    ("learner", "departure"),
    [
        ("aaco-tree", "  - The price of cost is an additional feature. "),  # its module's
        ("cscc", "  - Every classifier has a free constant"),  # its package's
    ],
)
def test_show_lists_departures_from_the_paper(bench, learner, departure):
    shown = bench("show", learner).out.partition("\nDepartures:\n")[2]
    assert departure in shown
    assert "``" not in shown


def test_a_learner_without_departures_shows_none(bench):
    assert "Departures" not in bench("show", "constant").out
