import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_core import Metric, Task, UsageError
from bench_core.metrics import default_metric, families, parse_metric
from bench_core.metrics.plugin import bench_metrics

WITH_CUT_OFF = ("ndcg", "precision", "ap", "leading_run_precision", "err", "mrr")
WITHOUT = ("accuracy", "balanced_accuracy", "log_loss", "auc", "mse")


@pytest.mark.parametrize("family", WITH_CUT_OFF)
@given(k=st.integers(1, 1000))
def test_any_cut_off_round_trips(family, k):
    metric = parse_metric(f"{family}@{k}")
    assert metric.name == f"{family}@{k}"
    assert parse_metric(metric.name) == metric


@pytest.mark.parametrize("family", ["ndcg", "ap", "err", "mrr", *WITHOUT])
def test_a_family_without_a_cut_off_round_trips(family):
    assert parse_metric(family).name == family


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("ndcg@5(ties=expected)", "ndcg@5"),
        ("ndcg@5(ties=stable,empty=skip)", "ndcg@5(empty=skip,ties=stable)"),
        ("  ndcg@5( ties = stable , empty=0 )", "ndcg@5(ties=stable)"),
        ("ndcg@05", "ndcg@5"),
        ("ndcg()", "ndcg"),
        ("precision@5(relevant=3)", "precision@5(relevant=3)"),
        ("precision@5(relevant=3.0)", "precision@5(relevant=3)"),
        ("precision@5(relevant=1)", "precision@5"),
        ("ap@10(relevant=0.1)", "ap@10(relevant=0.1)"),
        ("mrr(empty=1)", "mrr(empty=1)"),
        ("err@5(top=2)", "err@5(top=2)"),
        ("ndcg@5(gain=linear)", "ndcg@5(gain=linear)"),
    ],
)
def test_there_is_one_canonical_spelling(written, canonical):
    metric = parse_metric(written)
    assert metric.name == canonical
    assert parse_metric(canonical) == metric
    assert hash(parse_metric(canonical)) == hash(metric)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("", "write it as"),
        ("ndcg@5(", "write it as"),
        ("ndcg@5 @6", "write it as"),
        ("ncdg@5", "did you mean ndcg"),
        ("ndcg@", "write it as"),
        ("ndcg@0", "whole number from 1"),
        ("ndcg@-1", "whole number from 1"),
        ("ndcg@five", "whole number from 1"),
        ("ndcg@1.5", "whole number from 1"),
        pytest.param("ndcg@" + "9" * 5000, "whole number from 1", id="ndcg@999..."),
        ("precision", "needs a cut-off, such as precision@5"),
        ("leading_run_precision", "needs a cut-off"),
        ("accuracy@5", "accuracy has no cut-off"),
        ("ndcg@5(tie=stable)", "write 'tie=stable' as option=value"),
        ("ndcg@5(tie=stable)", "known: empty, gain, ties"),
        ("accuracy(ties=stable)", "known: none"),
        ("ndcg@5(k=3)", "'k=3'"),
        ("ndcg@5(ties=random)", "ties=random must be expected or stable"),
        ("ndcg@5(ties=stable,ties=stable)", "each option once"),
        ("ndcg@5(ties)", "write 'ties' as option=value"),
        ("ndcg@5(ties=stable,)", "write '' as option=value"),
        ("precision@5(relevant=many)", "relevant=many could not convert"),
        ("precision@5(relevant=0)", "must be a number above 0"),
        ("precision@5(relevant=nan)", "must be a number above 0"),
        ("precision@5(relevant=inf)", "must be a number above 0"),
    ],
)
def test_a_wrong_spelling_is_one_clear_line(written, told):
    with pytest.raises(UsageError) as error:
        parse_metric(written)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


@given(st.text(max_size=30) | st.from_regex(r"ndcg(@[0-9a-z.]+)?(\([a-z=,0-9]*\))?"))
def test_arbitrary_text_is_a_metric_or_one_line(text):
    try:
        told = parse_metric(text).name
    except UsageError as error:
        told = str(error)
    assert len(told.splitlines()) == 1


def test_every_family_keeps_the_metric_protocol():
    for metric in bench_metrics():
        assert isinstance(metric, Metric)
        assert metric.tasks <= frozenset(Task)


def test_lower_is_better_for_losses_alone():
    assert {m.name for m in bench_metrics() if not m.higher_is_better} == {"log_loss", "mse"}


def test_the_plugin_registers_cut_offs_5_and_10_and_no_name_twice():
    names = [m.name for m in bench_metrics()]
    assert len(set(names)) == len(names)
    for family in WITH_CUT_OFF:
        assert {f"{family}@5", f"{family}@10"} <= set(names)
    assert set(WITHOUT) <= set(names)
    assert set(families()) == {*WITH_CUT_OFF, *WITHOUT}


@pytest.mark.parametrize(
    ("task", "name"),
    [("ranking", "ndcg@5"), ("regression", "mse"), ("binary", "accuracy"),
     ("multiclass", "accuracy")],
)  # fmt: skip
def test_every_task_has_a_default_metric_that_suits_it(task, name):
    metric = default_metric(Task(task))
    assert metric.name == name
    assert task in metric.tasks


def test_a_registered_metric_is_found_by_its_name_before_the_built_in_ones():
    mine, other = object(), object()
    registered = {"mine@3": mine, "mse": other}
    assert parse_metric("mine@3", registered) is mine
    assert parse_metric("mse", registered) is other
    assert parse_metric("auc", registered) == parse_metric("auc")


def test_parsing_metrics_loads_no_heavy_library():
    code = (
        "import sys; from bench_core.metrics.plugin import bench_metrics; bench_metrics();"
        "print(sorted({'numba', 'scipy', 'pandas', 'sklearn'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
