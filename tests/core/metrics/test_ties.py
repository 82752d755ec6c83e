"""The tie rule and multiplicity, against every permutation of small queries."""

from itertools import permutations, product
from math import inf, log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_core import Queries, Task
from bench_core.metrics import parse_metric
from bench_core.planning.shipped import bench_metrics


def ndcg(grades, k):
    def dcg(order):
        return sum((2**g - 1) / log2(i + 2) for i, g in enumerate(order[:k]))

    return dcg(grades) / dcg(sorted(grades, reverse=True))


def precision(grades, k):
    return sum(g >= 1 for g in grades[:k]) / k


def ap(grades, k):
    relevant = [g >= 1 for g in grades]
    hits = [i for i, r in enumerate(relevant[:k]) if r]
    return sum(sum(relevant[: i + 1]) / (i + 1) for i in hits) / sum(relevant)


def leading_run_precision(grades, k):
    run = 0
    while run < min(k, len(grades)) and grades[run] >= 1:
        run += 1
    return 1.0 if run == len(grades) else run / k


def err(grades, k):
    value, goes_on = 0.0, 1.0
    for i, g in enumerate(grades[:k]):
        satisfied = (2**g - 1) / 2**4
        value += goes_on * satisfied / (i + 1)
        goes_on *= 1 - satisfied
    return value


def mrr(grades, k):
    places = [i + 1 for i, g in enumerate(grades) if g >= 1]
    return 1 / places[0] if places[0] <= (k or inf) else 0.0


DEFINITIONS = {
    "ndcg": ndcg,
    "precision": precision,
    "ap": ap,
    "leading_run_precision": leading_run_precision,
    "err": err,
    "mrr": mrr,
}
NEED_CUT_OFF = ("precision", "leading_run_precision")


def spelling(family, k, options=""):
    return family + (f"@{k}" if k else "") + (f"({options})" if options else "")


def copies(values, multiplicity):
    return [v for v, m in zip(values, multiplicity, strict=True) for _ in range(m)]


def orders(scores, grades):
    """The grades in every order that descending scores allow."""
    groups = [
        [g for s, g in zip(scores, grades, strict=True) if s == level]
        for level in sorted(set(scores), reverse=True)
    ]
    for parts in product(*(permutations(group) for group in groups)):
        yield [g for part in parts for g in part]


def expected(family, k, scores, grades):
    """Mean of the definition over all orders; 0 without a relevant document."""
    if max(grades) < 1:
        return 0.0
    return float(np.mean([DEFINITIONS[family](order, k) for order in orders(scores, grades)]))


def stable_order(scores, grades):
    """The grades by descending score, equal scores in row order."""
    ranks = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    return [grades[i] for i in ranks]


documents = st.lists(
    st.tuples(st.sampled_from([0.0, 1.0, 2.0]), st.integers(0, 4)), min_size=1, max_size=6
)
copied_documents = st.lists(
    st.tuples(st.sampled_from([0.0, 1.0]), st.integers(0, 3), st.integers(1, 3)),
    min_size=1,
    max_size=4,
).filter(lambda rows: sum(m for _, _, m in rows) <= 6)
cut_offs = st.sampled_from([None, 1, 2, 3, 5, 8])


def value(name, scores, grades, multiplicity=None):
    found = parse_metric(name).values(
        np.array(scores, float),
        np.array(grades, float),
        Queries.from_sizes(np.array([len(scores)])),
        None if multiplicity is None else np.array(multiplicity),
    )
    assert found.weights.tolist() == [1.0]
    return float(found.values[0])


@pytest.mark.parametrize("family", DEFINITIONS)
@settings(max_examples=60, deadline=None)
@given(rows=documents, k=cut_offs)
def test_tied_documents_give_the_mean_over_all_their_orders(family, rows, k):
    k = k or (5 if family in NEED_CUT_OFF else None)
    scores, grades = zip(*rows, strict=True)
    assert value(spelling(family, k), scores, grades) == pytest.approx(
        expected(family, k, scores, grades), abs=1e-12
    )


@pytest.mark.parametrize("family", DEFINITIONS)
@settings(max_examples=60, deadline=None)
@given(rows=documents, k=cut_offs)
def test_the_stable_rule_takes_ties_in_row_order(family, rows, k):
    k = k or (5 if family in NEED_CUT_OFF else None)
    scores, grades = zip(*rows, strict=True)
    by_hand = DEFINITIONS[family](stable_order(scores, grades), k) if max(grades) else 0.0
    assert value(spelling(family, k, "ties=stable"), scores, grades) == pytest.approx(
        by_hand, abs=1e-12
    )


@pytest.mark.parametrize("family", DEFINITIONS)
@settings(max_examples=60, deadline=None)
@given(rows=copied_documents, k=cut_offs)
def test_multiplicity_gives_the_mean_over_all_orders_of_physical_copies(family, rows, k):
    k = k or (5 if family in NEED_CUT_OFF else None)
    scores, grades, multiplicity = zip(*rows, strict=True)
    by_hand = expected(family, k, copies(scores, multiplicity), copies(grades, multiplicity))
    assert value(spelling(family, k), scores, grades, multiplicity) == pytest.approx(
        by_hand, abs=1e-12
    )


@pytest.mark.parametrize("family", DEFINITIONS)
@settings(max_examples=60, deadline=None)
@given(rows=copied_documents, k=cut_offs)
def test_under_the_stable_rule_copies_fill_consecutive_places(family, rows, k):
    k = k or (5 if family in NEED_CUT_OFF else None)
    scores, grades, multiplicity = zip(*rows, strict=True)
    order = stable_order(copies(scores, multiplicity), copies(grades, multiplicity))
    by_hand = DEFINITIONS[family](order, k) if max(grades) else 0.0
    name = spelling(family, k, "ties=stable")
    assert value(name, scores, grades, multiplicity) == pytest.approx(by_hand, abs=1e-12)


def test_one_relevant_document_tied_with_three_others_by_hand():
    grades = [0, 0, 1, 0]  # at place 1, 2, 3 or 4 with chance 1/4 each
    scores = [7.0] * 4
    assert value("mrr", scores, grades) == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)
    assert value("precision@2", scores, grades) == pytest.approx(1 / 4)  # (1 + 1 + 0 + 0) / 2 / 4
    assert value("leading_run_precision@5", scores, grades) == pytest.approx(1 / 4 / 5)


def test_long_tie_groups_agree_with_their_sampled_mean():
    """Groups of 40 use running sums instead of loops; permutations cannot be enumerated."""
    rng = np.random.default_rng(5)
    scores = np.repeat([2.0, 1.0, 0.0], [3, 40, 5])
    grades = rng.integers(0, 3, 48)
    for family in ("ap", "ndcg", "err", "mrr"):
        draws = []
        for _ in range(4000):
            order = np.lexsort((rng.random(48), -scores))
            draws.append(DEFINITIONS[family]([int(g) for g in grades[order]], 30))
        error = np.std(draws) / np.sqrt(len(draws))
        assert abs(value(f"{family}@30", scores, grades) - np.mean(draws)) < 4.5 * error


def test_long_tie_groups_give_average_precision_exactly():
    """One group of n with r relevant: E[AP] from the chance that places i and l are relevant."""
    n, r = 200, 30
    by_hand = sum(r / n * (1 + (i - 1) * (r - 1) / (n - 1)) / i for i in range(1, n + 1)) / r
    grades = [1] * r + [0] * (n - r)
    assert value("ap", [0.0] * n, grades) == pytest.approx(by_hand, abs=1e-12)


def test_infinite_scores_tie_with_one_another():
    tied = value("ndcg@1", [np.inf, np.inf, -np.inf], [0, 1, 0])
    assert tied == pytest.approx(0.5)


def test_a_tie_at_the_cut_off_is_shared_by_documents_beyond_it():
    scores = [9.0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0]
    grades = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1]
    assert value("precision@2", scores, grades) == pytest.approx(1 / 10 / 2)
    assert value("precision@2(ties=stable)", scores, grades) == 0


@pytest.mark.parametrize(
    ("name", "grades", "by_hand"),
    [
        ("mrr@2", [0, 0, 1, 0], 1 / 3 / 2),
        ("ap@2", [0, 0, 1, 0], 1 / 3 / 2),
        ("precision@2", [0, 0, 1, 0], 1 / 3 / 2),
        ("ndcg@2", [0, 0, 1, 0], 1 / 3 / np.log2(3)),
        ("err@2", [0, 0, 1, 0], 1 / 3 * 1 / 16 / 2),
        ("leading_run_precision@2", [1, 0, 1, 0], (1 + 1 / 3) / 2),
    ],
)
def test_of_a_tie_across_the_cut_off_only_the_places_before_it_count(name, grades, by_hand):
    """One document stands first, three share the places 2 to 4."""
    assert value(name, [9, 1, 1, 1], grades) == pytest.approx(by_hand, abs=1e-15)


RANKING = [metric_m.name for metric_m in bench_metrics() if Task.RANKING in metric_m.tasks]
STABLE = [f"{name}(ties=stable)" for name in RANKING]
REGRESSION = ("mse", "mae", "r2")
ROWS = [metric_m.name for metric_m in bench_metrics() if Task.RANKING not in metric_m.tasks]


@pytest.fixture(scope="module")
def split_sample():
    rng = np.random.default_rng(11)
    queries = Queries.from_sizes(rng.integers(1, 60, 80))
    n = queries.rows
    grades = rng.choice(5, n, p=[0.5, 0.2, 0.15, 0.1, 0.05]).astype(float)
    scores = np.round(rng.normal(size=n) + grades / 3, 1)
    multiplicity = np.where(grades == 0, 10, rng.integers(1, 4, n))
    physical = np.repeat(np.arange(n), multiplicity)
    sizes = np.add.reduceat(multiplicity, queries.boundaries[:-1])
    return scores, grades, queries, multiplicity, physical, Queries.from_sizes(sizes)


@pytest.mark.parametrize("name", RANKING + STABLE)
def test_ranking_values_equal_those_of_physical_copies(name, split_sample):
    scores, grades, queries, multiplicity, physical, copied = split_sample
    metric = parse_metric(name)
    counted = metric.values(scores, grades, queries, multiplicity)
    repeated = metric.values(scores[physical], grades[physical], copied)
    np.testing.assert_allclose(counted.values, repeated.values, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(counted.weights, repeated.weights)


@pytest.mark.parametrize("name", RANKING)
def test_multiplicity_is_not_ignored(name, split_sample):
    scores, grades, queries, multiplicity, _, _ = split_sample
    metric = parse_metric(name)
    plain = metric.values(scores, grades, queries).mean
    assert plain != pytest.approx(metric.values(scores, grades, queries, multiplicity).mean)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("name", ROWS)
def test_row_metrics_equal_those_of_physical_copies(name, classes):
    rng = np.random.default_rng(classes)
    n = 200
    y = rng.integers(0, classes, n).astype(float)
    scores = np.round(rng.normal(size=n if classes == 2 or name in REGRESSION else (n, classes)), 1)
    multiplicity = rng.integers(1, 9, n)
    physical = np.repeat(np.arange(n), multiplicity)
    metric = parse_metric(name)
    counted = metric.values(scores, y, None, multiplicity)
    repeated = metric.values(scores[physical], y[physical])
    assert counted.mean == pytest.approx(repeated.mean, abs=1e-12)
    assert counted.mean != pytest.approx(metric.values(scores, y).mean, abs=1e-6)
    np.testing.assert_allclose(counted.values[physical], repeated.values, rtol=0, atol=1e-12)


def test_copies_are_never_made():
    """A thousand million copies of a row take no memory where a cut-off bounds the places."""
    queries = Queries.from_sizes(np.array([3]))
    huge = np.array([10**9, 1, 10**9])
    found = parse_metric("ndcg@5").values(np.zeros(3), np.array([0.0, 1, 0]), queries, huge)
    by_hand = sum(1 / np.log2(i + 2) for i in range(5)) / (2 * 10**9 + 1)  # ideal gain is 1
    assert found.mean == pytest.approx(by_hand, rel=1e-12)
