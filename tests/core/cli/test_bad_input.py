"""Bad input through the whole command: status 2, one line that says what, where and what to do,
and everything in the folder as it was. Tests of a part have the other faults of its input."""

import gzip
import os
import re
import shlex
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from helpers import toy_plugin
from helpers.commands import DATA, QUICK, write_csv
from helpers.kit import assert_line

from bench_core.cli import main
from bench_core.errors import printable
from bench_core.results.writer import open_writer

STORE = "results/bench.db"
LEARN = "-l gbrt --set gbrt.trees=2 --executor inline"
SHORT = {  # parts of commands
    "DATA": shlex.join(DATA),
    "QUICK": shlex.join(QUICK),
    "SVM": f"run --data rows.svm {LEARN}",
    "TABLE": f"run {shlex.join(DATA)} {LEARN}",
    "REPRICE": "reprice -p mine",
    "EXPORT": "model export -o model",
}
URL = "https://host/x.csv"
SUITE = """title = "Mine"
datasets = ["breast-cancer"]
metrics = ["accuracy"]
reference = "gbrt"
seeds = [0]
[profiles.quick]
size = "quick"
[learners.{learner}]
trees = 2
"""
ROWS = "".join(f"{k % 2} 1:{k % 11} 2:{k % 7}\n" for k in range(80))
FILES = {
    "rows.svm": ROWS,
    "rows.svm.query": "4\n" * 20,
    "short.svm": ROWS,
    "short.svm.query": "4\n" * 19,
    "cut.svm.gz": gzip.compress(ROWS.encode(), mtime=0)[:-20],
    "empty.svm": "",
    "text.zip": "text",
    "dump.sql": "-- MySQL dump\nINSERT INTO t VALUES (1, 2);\n",
    "free.csv": "a,d,label\n" + "".join(f"{k},note {k},{k % 2}\n" for k in range(60)),
    "new.csv": "a,1\nb,2\nc,30\n",
    "short.csv": "a,1\nb,2\nz,3\n",
    "broken.json": '{"costs": {"a": 10,\n "b": 5\n "c": 1}}\n',
    "shared.json": '{"costs": {"a": 1, "b": 1, "c": 2}, "shared": [["a", "b"]]}',
    "own.toml": SUITE.format(learner="gbrt"),
    "gbdt.toml": SUITE.format(learner="gbdt"),
    "priced.toml": f'costs = "short.csv"\n{SUITE.format(learner="gbrt")}',
    "other/part.csv": "a,b,c,label\n1,2,3,0\n2,2,3,1\n",
    "home/datasets.toml": '[described]\nfile = "rows.csv"\ntask = "binary"\ncosts = "prices.csv"\n',
    **dict.fromkeys(("home/rows.csv", "home/prices.csv", "home/x/spambase.data"), "a,1\n"),
    "extract.py": "def length(path):\n    return 1.0\n",
    "older/model.json": "{}",
    "raises.py": "raise RuntimeError('no\\nluck')\n",
    "hookless.py": "x = 1\n",
    "other/letter.txt": "dear reader",
}
REFUSED = {  # words of the one line, separated by bars
    # the command
    "runn": "did you mean run or rerun?",
    "list lerners": "'learners', 'datasets'",
    "show gbrtt": "did you mean gbrt",
    "-q run": "options come after the verb",
    "run --sede 3": "--seed",
    "run --budget 10": "bench best --budget 10",
    "run --keep 95": "--keep|'95' is not a share, such as 95% or 0.95",
    "report --keep 95": "--keep|'95' is not a share: write 99% or 0.99",
    "run --timeout 3x": "10m",
    "run --memory lots": "4GiB",
    "run --seeds 5-2": "0-2",
    "show 7q9x": "known: aaco,|and 1|more; see",
    "run --workers 0": "--workers",
    "run --label y": "--data FILE",
    "run --label y --data rows.svm --label z": "run: --label is given 2 values|keep one of them",
    "run -w 1 --workers 2 -w 3": "run: --workers is given 3 values",
    "EXPORT --learner toy --learner gbrt": "model export: --learner is given 2 values",
    "SVM --set gbrt.trees=3": "--set gbrt.trees=2 and --set gbrt.trees=3|keep one|gbrt.trees=[...]",
    **{f"run {flag} ''": f"{flag}|leave the option out"
       for flag in ("--learners", "--data", "--metric", "--seeds", "-p", "--label", "--query",
                    "--task", "--costs", "--unit", "--suite", "--test")},
    # files
    "run letters": "give data by --data, suites by --suite",
    "run text.zip": "text.zip|not a bundle of a run",
    "run none.zip": "none.zip|not a bundle of a run",
    "run --data empty.svm": "empty.svm|empty|name another",
    "run --data cut.svm.gz": "cut.svm.gz|damaged|again",
    "run --data short.svm": "short.svm.query|76|80 rows|side-car",
    "run --data free.csv": "free.csv, column 'd'|60|--drop",
    "SVM --test tset.svm": "tset.svm|no such file|check the name",
    "run --data data.csv --label label --task ranking": "data.csv|queries|--query",
    "run --data data.csv --label lable": "data.csv, line 1|--label|did you mean label?",
    "TABLE --costs short.csv": "short.csv: feature 'c'|not used: 'z'",
    "TABLE --costs broken.json": "broken.json, line 3|JSON|correct it",
    f"run --data {URL}": f"{URL}|a URL|curl",
    f"TABLE --test {URL}": f"{URL}|a URL",
    f"TABLE --costs {URL}": f"{URL}|a URL",
    f"run --data letters --data-dir {URL}": f"{URL}|a URL",
    # data sets, suites, plugins
    "run --suite quickstrt": "did you mean quickstart?",
    "run --suite gbdt.toml": "gbdt.toml|'gbdt'|gbrt",
    "run --suite absent.toml": "absent.toml",
    "run --suite own.toml --test rows.svm": "--test|suite|--data FILE",
    "run --suite own.toml --data letters": "--data|'letters'|breast-cancer",
    "TABLE -p raises": "-p raises|RuntimeError: no luck",
    "TABLE -p hookless": "-p hookless|it has no hooks|'bench new'",
    "TABLE -p raises.py": "-p raises.py|by its name, raises",
    "TABLE --encoding klingon": "'--encoding'|'klingon'|Python",
    "TABLE --costs data.csv": "data.csv, line 2|below a line of features|for each feature",
    "run --suite quickstart -p no.such.module": "no.such.module",
    "run --data letters --data-dir .": "letter-recognition.data|bench data fetch letters",
    "run --suite letters --data-dir .": "bench data fetch letters",
    "run --data pima --data-dir .": "bench show pima",
    **{f"run --data breast-cancer {words}": f"{words.split()[0]}|registered data set"
       for words in ("--cv 5", "--drop x", "--unit ms", "--group a:1")},
    # options that contradict the data or each other
    "SVM --set gbrt.tree=3": "--set gbrt.tree=3|did you mean trees?",
    "run --data rows.svm -l gbrt --set gbrt.trees=-1": "--set gbrt.trees=-1|at least 0",
    "SVM --set miser.trees=3": "--set miser.trees=3|--learners",
    "SVM -m ndgc@5": "'ndgc|ndcg",
    "SVM -m auc": "auc|ranking|rows.svm|ndcg",
    "TABLE -m total_cost": "needs costs of errors: --error-costs COSTS",
    "TABLE --error-costs column:price": "unknown column 'price'",
    "SVM --task regression --error-costs 5": "regression, which has no classes",
    "TABLE --cv 5 --share 0.3": "--cv|1/5",
    "TABLE --cv 5 --split x": "--cv|leave out --split",
    "TABLE --cv 2": "--cv|at least 3",
    "TABLE --share 0.6,0.5": "--share|0.2,0.2",
    "TABLE --share much": "'much'|fractions",
    "TABLE --reference gbtr": "did you mean gbrt",
    "TABLE --group x:3": "--group x:3|unknown|'x'",
    "init data.csv --name letters": "'letters'|another data set",
    "init data.csv --label lable": "unknown|'lable'|did you mean",
    "init lones.csv": "lones.csv: no such file",
    "init data.csv --name 'my loans'": "--name 'my loans'|letters, digits",
    # budgets and targets
    "best -b 10,x": "--budget|'x' is not a cost|10",
    "best -b ''": "--budget|'' is not a cost",
    "best -b nan": "--budget|'nan' is not a cost",
    "best -b 'p95 3'": "--budget|unknown kind 'p95'",
    "best -b 'cap inf'": "'cap inf' is not a cost",
    "best -b 3 --budget-kind max": "--budget-kind",
    "features -b 1,2": "--budget 1,2|one budget",
    "report -b -1": "--budget|'-1' is not a cost",
    "report -b 'cap inf'": "'cap inf' is not a cost",
    "compare toy gbrt -b '1;2'": "--budget|'1;2' is not a cost",
    "run QUICK --caps 0": "'--caps'|'0' is not a cap|> 0",
    "run QUICK --caps 'mean 3'": "'--caps'|'3' is not a cap",
    "run QUICK --caps a": "'--caps'|'a' is not a cost",
    "reprice --costs costs.csv --caps 0": "'--caps'|'0' is not a cap",
    "best --keep 99% --budget 3": "--budget and --keep|only one",
    "best --keep 1 --quality 1": "--keep and --quality|only one",
    "features --keep 99": "--keep|'99'|99% or 0.99",
    "compare toy gbrt --keep 0%": "--keep|'0%' is not a share",
    "best --quality nan": "--quality nan|finite|0.85",
    "features --quality inf": "--quality inf|finite",
    "best --quality 99%": "--quality 99%|share of the reference|--keep 99%",
    # a run's results
    "compare gbrt": "two learners|bench compare",
    "compare gbrt gbrt": "two learners",
    "compare toy gbrt --budget-kind cap": "--budget-kind cap|--budget",
    "compare 3 gbrt": "'3'|--run 3",
    "compare gbrt cegb 3": "'cegb'|--run 3",
    "compare --against toyy": "'toyy'|did you mean toy?",
    "compare gbrt toyy": "'toyy'|did you mean toy?",
    "compare toy gbrt -d dat.csv": "unknown data set|'dat.csv'",
    "features --learner gbtr": "'gbtr'|did you mean gbrt?",
    "features -d other": "unknown data set|'other'",
    "features --budget -1": "-1",
    "report mine": "unknown run 'mine'",
    "report lst": "did you mean last?",
    "report --run lst": "did you mean last?",
    "report 1 --run 2": "RUN 1 and --run 2: keep one of them",
    "best mine --budget 3": "unknown run 'mine'",
    "best --budget 3 -d letters": "'letters'|data.csv",
    "best --budget 3 -m ndcg@5": "ndcg@5|accuracy",
    "report -l tyo": "run 1|'tyo'|did you mean toy?",
    "export -f parquet": "parquet|-o results.parquet",
    "rerun zzz -p mine": "'zzz'|bench export",
    "rerun '' -p mine": "''",
    "REPRICE --costs none.csv": "none.csv|no such file|check the name",
    "REPRICE --costs short.csv": "short.csv|'c' has no cost",
    "REPRICE --costs shared.json": "share|run's",
    "REPRICE --costs new.csv -d dat.csv": "'dat.csv'|did",
    "REPRICE nope --costs new.csv": "unknown run 'nope'",
    "REPRICE": "give --costs or --error-costs",
    "audit -p mine --executor dask": "--executor dask|local or inline",
    "EXPORT --learner gbt": "did you mean gbrt",
    "EXPORT --learner toy -p mine": "cannot be exported",
    "EXPORT -d other": "unknown data set",
    "EXPORT --seed 7": "data.csv|no such repeat|seed 0 of fold 0",
    "EXPORT -m ndcg@5": "unknown metric",
    "EXPORT --quality 2": "accuracy 2",
    "EXPORT --learner gbrt --quality 2": "accuracy 2 is out of reach|at most 1",
    "EXPORT --quality -inf": "--quality -inf|finite",
    "EXPORT -b 1 --quality 2": "only one",
    "EXPORT --keep x": "--keep|'x' is not a share",
    "model export --learner gbrt -o other": "other|contains other files",
    # outputs and jobs
    "SVM -o results": "results|folder",
    "SVM -o rows.svm/board.html": "rows.svm/board.html|another place",
    "report -o results": "results|folder",
    "export -o x.xml": ".csv",
    **{f"best --budget 3 -o best.{end}": f"best.{end}|(.txt)" for end in ("json", "html", "tex")},
    "report -o noending": "noending|.tex",
    "report -o board.docx": "board.docx|.tex",
    "report --plot c.html": "c.html|.pdf",
    "report -o b.md --plot c.jpg": "c.jpg|.pdf",
    "plan QUICK -l toy --jobs 2": "-o",
    "plan QUICK -l toy -o .": "folder",
    **{f"{words} -o {file}": f"cannot write {file}: this command reads it; name another file"
       for words, file in {
           "plan DATA": "data.csv",
           "TABLE": "data.csv",
           "TABLE --test other/part.csv": "other/part.csv",
           "plan DATA --costs costs.csv": "costs.csv",
           "TABLE --costs costs.csv": "costs.csv",
           "TABLE --error-costs costs.csv": "costs.csv",
           "run --suite priced.toml": "short.csv",
           "plan --suite priced.toml": "short.csv",
           "REPRICE --costs new.csv": "new.csv",
           "report --store board.html": "board.html",
           "best --store board.html": "board.html",
           "features --store board.html": "board.html",
           "compare toy gbrt --store board.html": "board.html",
           "claims --store board.html": "board.html",
           "list runs --store board.html": "board.html",
           "audit -p mine": STORE,
           "log": STORE,
           "export -f csv": f"{STORE}-wal",
           "show toy -p mine": "mine.py",
           "cost measure extract:length -i other": "extract.py",
           "cost measure extract:length -i other/letter.txt": "other/letter.txt",
           "cost measure extract:length --input other": "other/letter.txt",
       }.items()},
    "plan DATA --data-dir home -o home/rows.csv": "it is a file of data set described",
    "run -d described --data-dir home -o home/prices.csv": "it is a file of data set described",
    "list learners --data-dir home -o home/datasets.toml": "it describes data sets; name another",
    "list learners --data-dir home -o home/x/spambase.data": "it is a file of data set spambase",
    "report --store curve.svg --plot curve.svg": "curve.svg: this command reads it; name another",
    "model export --store older/bench.db -o older": "older/bench.db there; name another folder",
    "run --data dump.sql": "dump.sql: a dump of SQL|save its rows as CSV",
    "run --data data.csv --label Label": "did you mean label?",
    "work jobs/1": "jobs/1.json: not a job file",
    "work data.csv": "data.csv: not a job file",
    "work other": "other: not a job file|bench plan --jobs",
    "work .": ".: not a job file",
    "merge": "nothing to merge",
    "merge no.db": "no.db: no results there",
    "merge data.csv": "data.csv: not a results store",
}  # fmt: skip


def words_of(line):
    """The words of a command line, with the parts that have short names."""
    return shlex.split(re.sub(r"\b[A-Z]{3,}\b", lambda found: SHORT[found[0]], line))


def contents(folder):
    """Everything below a folder but the cache of prepared data, byte by byte."""
    return {
        str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None
        for p in sorted(folder.rglob("*"))
        if p.relative_to(folder).parts[0] not in ("cache", "__pycache__")
        and not p.name.endswith(("-shm", "-wal"))  # SQLite's own, empty once nobody writes
    }


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder with files, a store with one run, and their prepared data."""
    folder = tmp_path_factory.mktemp("kept")
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    write_csv(folder / "data.csv")
    (folder / "costs.csv").write_text("a,10\nb,5\nc,1\n")
    shutil.copy(toy_plugin.__file__, folder / "mine.py")
    learners = ("-l", "toy,gbrt", "--reference", "gbrt", "--set", "gbrt.trees=2")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "path", [*sys.path])
        patch.setenv("BENCH_CACHE", str(folder / "cache"))
        with pytest.raises(SystemExit) as end:
            main(["run", *QUICK, *learners, "--quiet", "--store", STORE])
    assert end.value.code == 0
    for name in ("board.html", "curve.svg", "older/bench.db"):
        shutil.copy(folder / STORE, folder / name)
    return folder


@pytest.fixture
def place(kept, elsewhere, monkeypatch):
    """A copy of that folder, in which the command is called. However slow the machine is, nothing
    but the fault is said."""
    shutil.copytree(kept, elsewhere, dirs_exist_ok=True)
    for name in ("mine", "raises", "hookless"):
        sys.modules.pop(name, None)
    monkeypatch.setattr("bench_core.terminal.progress.MOMENT", 600.0)
    return elsewhere


def assert_refused(ended, words):
    """Status 2, nothing on stdout and one line on stderr that has all these words."""
    assert (ended.status, ended.out) == (2, ""), ended
    assert ended.err.startswith("error: ")
    assert_line(ended.err, words)


@pytest.mark.parametrize("line", REFUSED)
def test_is_refused_in_one_line_and_leaves_everything_as_it_was(line, bench, place):
    before = contents(place)
    assert_refused(bench(*words_of(line)), REFUSED[line])
    assert contents(place) == before


@pytest.mark.parametrize("words", ["SVM", "TABLE --costs new.csv", "run --suite own.toml"])
def test_sound_files_run(words, bench, place):
    ended = bench(*words_of(words), "--store", "new/bench.db")
    assert ended.status == 0, ended.err
    assert (place / "new/bench.db").is_file()


def altered(statement):
    """A change of the database, which is made if it is not there."""

    def alter(store):
        with closing(sqlite3.connect(store)) as db, db:
            db.execute("PRAGMA journal_mode = DELETE")
            db.execute(statement)

    return alter


def a_folder(store):
    store.unlink()
    store.mkdir()


def of_another_program(store):
    store.unlink()
    altered("CREATE TABLE mails (text TEXT)")(store)


STORES = {
    "no database": (lambda store: store.write_text("run,learner,ndcg\n" * 20), "name another"),
    "of another program": (of_another_program, "another program|name another"),
    "of a newer version": (altered("PRAGMA user_version = 99"), "newer version|99"),
    "a folder": (a_folder, "is a folder"),
    "cut short": (lambda store: os.truncate(store, 5000), "name another with --store"),
}
VERBS = ("report", "best --budget 3", "export", "audit --executor inline", "list runs")


@pytest.mark.parametrize("verb", ["TABLE", f"plan DATA {LEARN}", *VERBS])
@pytest.mark.parametrize("kind", STORES)
def test_a_store_that_is_none_is_refused_and_left_alone(kind, verb, bench, place):
    spoil, words = STORES[kind]
    spoil(place / STORE)
    before = contents(place)
    assert_refused(bench(*words_of(verb), "--store", STORE), f"{STORE}|{words}")
    assert contents(place) == before


@pytest.mark.parametrize("verb", VERBS)
def test_without_a_store_the_remedy_is_a_run(verb, bench, place):
    before = contents(place)
    assert_refused(bench(*verb.split(), "--store", "new/bench.db"), "new/bench.db|bench run")
    assert contents(place) == before


@pytest.mark.parametrize(
    "store", ["rows.svm/x.db", "/dev/null/x.db", "closed/x.db", "closed/deeper/x.db"]
)
def test_a_store_below_a_file_or_in_a_closed_folder_is_refused(store, bench, place):
    (place / "closed").mkdir(mode=0o500)
    if "closed" in store and os.access(place / "closed", os.W_OK):
        pytest.skip("who may write everywhere, as root may, meets no closed folder")
    before = contents(place)
    assert_refused(bench(*words_of("TABLE"), "--store", store), f"{store}|--store")
    assert contents(place) == before


def test_a_store_that_another_run_is_writing_is_refused(bench, place):
    with open_writer(Path(STORE)):
        before = contents(place)
        ended = bench(*words_of("TABLE"), "--fresh", "--quiet", "--store", STORE)
        assert_refused(ended, f"{STORE}|another run is writing|wait for it")
        assert contents(place) == before


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("größe\u2003μ\n\tx", None),
        ("\x1b[1m\u202ea\0", "\\x1b[1m\\u202ea\\x00"),
        ("a'b\r", "a'b\\r"),
    ],
)
def test_what_a_terminal_would_obey_is_escaped_and_nothing_else(text, shown):
    assert printable(text) == (text if shown is None else shown)
