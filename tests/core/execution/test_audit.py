from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from helpers import models

from bench_core import Acquired, Bill, Examples, Prediction, Prices, Queries, price_list
from bench_core.execution.audit import replay
from bench_core.execution.predict import predict_split

PRICES = Prices.additive(np.array([1.0, 2, 3, 4, 5, 6]), split=0.5)


def data(n: int = 600, ranked: bool = True) -> Examples:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, models.D)).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    queries = Queries(np.arange(0, n + 1, 5)) if ranked else None
    return Examples(X, np.zeros(n), queries)


def verdict(say: Any, mode: str = "sample", ranked: bool = True, **more: Any) -> Any:
    return replay(models.Scripted(say), data(ranked=ranked), PRICES, 0, mode, seed="s", **more)


@pytest.mark.parametrize("ranked", [True, False])
@pytest.mark.parametrize("say", [models.honest, models.ranks_in_query])
def test_an_honest_model_passes(say: Any, ranked: bool) -> None:
    assert verdict(say, ranked=ranked).word == "sampled"
    assert verdict(say, "full", ranked).word == "verified"


@pytest.mark.parametrize("ranked", [True, False])
@pytest.mark.parametrize("mode", ["sample", "full"])
def test_a_model_that_peeks_for_its_scores_is_caught(mode: str, ranked: bool) -> None:
    found = verdict(models.peeks_for_its_scores, mode, ranked)
    assert found.word == "failed"
    assert "its scores change" in found.reason
    assert "{'step': 2}" in found.reason


@pytest.mark.parametrize("ranked", [True, False])
@pytest.mark.parametrize("mode", ["sample", "full"])
def test_a_model_that_peeks_to_decide_what_to_buy_is_caught(mode: str, ranked: bool) -> None:
    found = verdict(models.peeks_to_decide, mode, ranked)
    assert found.word == "failed"
    assert "what it buys (acquired)" in found.reason


def test_a_zero_weight_times_what_was_not_paid_is_caught() -> None:
    found = verdict(models.multiplies_by_zero)
    assert found.word == "failed"
    assert "not finite" in found.reason


@pytest.mark.parametrize("say", [models.centres_by_block, models.centres_few_by_block])
@pytest.mark.parametrize("mode", ["sample", "full"])
def test_a_model_that_keys_on_the_blocks_other_queries_is_caught(mode: str, say: Any) -> None:
    found = verdict(say, mode)
    assert found.word == "failed"
    where = {"sample": "other queries of its block", "full": "the block a query stands in"}
    assert where[mode] in found.reason


def test_a_model_that_keys_on_the_size_of_its_block_is_caught_by_the_trials_own_scores() -> None:
    model, examples = models.Scripted(models.keys_on_size), data()
    path = predict_split(model, examples, PRICES, 0)
    found = replay(model, examples, PRICES, 0, seed="s", path=path)
    assert found.word == "failed"
    assert "scores change with the block" in found.reason


@pytest.mark.parametrize("say", [models.honest, models.ranks_in_query])
def test_an_honest_model_agrees_with_the_trials_own_scores(say: Any) -> None:
    model, examples = models.Scripted(say), data()
    path = predict_split(model, examples, PRICES, 0)
    assert replay(model, examples, PRICES, 0, seed="s", path=path).word == "sampled"


def complete() -> Examples:
    rng = np.random.default_rng(9)
    X = rng.normal(size=(600, models.D)).astype(np.float32)
    return Examples(X, np.zeros(600), Queries(np.arange(0, 601, 5)))


@pytest.mark.parametrize("mode", ["sample", "full"])
def test_a_missing_cell_at_a_point_that_pays_for_it_is_not_held_against_a_cheaper_one(
    mode: str,
) -> None:
    model = models.Scripted(models.reads_more_than_it_can_use)
    found = replay(model, complete(), PRICES, 0, mode, seed="s")
    assert found.word == {"sample": "sampled", "full": "verified"}[mode]


@pytest.mark.parametrize("mode", ["sample", "full"])
def test_a_score_that_is_nan_where_unpaid_cells_are_is_caught(mode: str) -> None:
    model = models.Scripted(models.multiplies_by_zero)
    found = replay(model, complete(), PRICES, 0, mode, seed="s")
    assert found.word == "failed"
    assert "replaced by NaN, its scores change" in found.reason


@pytest.mark.parametrize("mode", ["sample", "full"])
@pytest.mark.parametrize(
    ("say", "what"),
    [(models.imputes, "its scores"), (models.imputes_to_decide, "what it buys (acquired)")],
)
def test_a_model_that_imputes_an_unpaid_cell_well_is_caught_by_other_rows_values(
    say: Any, what: str, mode: str
) -> None:
    """The unpaid column equals a paid one, so that its absence alone changes nothing."""
    examples = complete()
    examples.X[:, 5] = examples.X[:, 0]
    found = replay(models.Scripted(say), examples, PRICES, 0, mode, seed="s")
    assert found.word == "failed"
    assert f"replaced by other rows' values, {what} change" in found.reason


@pytest.mark.parametrize("mode", ["sample", "full"])
def test_nothing_noted_in_the_block_reaches_the_next_call(mode: str) -> None:
    found = replay(models.Annotates(), complete(), PRICES, 0, mode, seed="s")
    assert found.word == "failed"


@pytest.mark.parametrize("mode", ["sample", "full"])
def test_what_an_instance_remembers_is_of_no_use_to_the_one_that_is_shown_replaced_cells(
    mode: str,
) -> None:
    model, examples = models.Remembers(), complete()
    path = predict_split(model, examples, PRICES, 0)
    blind = nullcontext(models.Remembers())
    found = replay(model, examples, PRICES, 0, mode, seed="s", path=path, fresh=lambda: blind)
    assert found.word == "failed"
    assert "its scores change" in found.reason


class Watches(models.Scripted):
    """Keeps each block that it is shown."""

    def predict_path(self, features: Any) -> Any:
        self.__dict__.setdefault("blocks", []).append(features.X)
        return super().predict_path(features)


def watched(say: Any, examples: Examples, mode: str) -> list[list[Any]]:
    """The blocks that each fresh instance is shown."""
    instances: list[Any] = []

    def fresh() -> Any:
        instances.append(Watches(say))
        return nullcontext(instances[-1])

    found = replay(models.Scripted(say), examples, PRICES, 0, mode, seed="s", fresh=fresh)
    assert found.word != "failed"
    return [one.blocks for one in instances]


@pytest.mark.parametrize("n", [150, 600])
@pytest.mark.parametrize("mode", ["sample", "full"])
def test_an_instance_that_is_shown_hidden_cells_never_sees_a_row_whole(mode: str, n: int) -> None:
    """Neither its own nor another's: what was not paid for is mixed by column."""
    examples = complete()
    examples = Examples(examples.X[:n], examples.y[:n])
    rows = {tuple(cells) for cells in examples.X[:, 3:].tolist()}
    hidden = [
        blocks
        for blocks in watched(models.honest, examples, mode)
        if any(np.isnan(X).any() for X in blocks)
    ]
    assert len(hidden) == {"sample": 2, "full": 4}[mode]  # half of them see what others bought
    for X in (X for blocks in hidden for X in blocks):
        assert np.mean([tuple(cells) in rows for cells in X[:, 3:].tolist()]) < 0.01


def test_the_purchase_of_fewest_sensors_is_replaced_first() -> None:
    def descends(X: Any, features: Any, point: int) -> Any:
        return X[:, 0], models.bought(len(X), *range(7 - 2 * point))

    *_, shown = watched(descends, complete(), "full")
    assert [int(np.isnan(X[0]).sum()) for X in shown] == [5, 0, 3, 0, 1, 0]


def test_the_full_audit_too_compares_with_the_trials_own_scores() -> None:
    class Tires(models.Scripted):
        calls = 0

        def predict_path(self, features: Any) -> Any:
            self.calls += 1
            for prediction in super().predict_path(features):
                prediction.scores[:] += self.calls == 1
                yield prediction

    model, examples = Tires(models.honest), complete()
    path = predict_split(model, examples, PRICES, 0)
    found = replay(model, examples, PRICES, 0, "full", seed="s", path=path)
    assert "scores change with the block" in found.reason


def test_scores_are_compared_with_the_trials_under_any_accounting_and_costs_under_path() -> None:
    model, examples = models.Scripted(models.keys_on_size), data()
    path = predict_split(model, examples, PRICES, 0)
    found = replay(model, examples, PRICES, 0, seed="s", path=path, accounting="model")
    assert "scores change with the block" in found.reason
    honest = models.Scripted(models.honest)
    path = predict_split(honest, examples, PRICES, 0)
    path.cost += 1.0
    found = replay(honest, examples, PRICES, 0, seed="s", path=path, accounting="model")
    assert found.word == "sampled"
    found = replay(honest, examples, PRICES, 0, seed="s", path=path)
    assert "costs change" in found.reason


def test_a_path_that_grows_shorter_with_other_queries_is_caught() -> None:
    class Shortens(models.Scripted):
        def predict_path(self, features: Any) -> Any:
            for prediction in super().predict_path(features):
                yield prediction
                if np.isnan(features.X).any():
                    return

    found = replay(Shortens(models.honest), complete(), PRICES, 0, "full", seed="s")
    assert "another length" in found.reason


def test_without_an_audit_costs_are_only_declared() -> None:
    assert verdict(models.peeks_for_its_scores, "off").word == "declared"


@pytest.mark.parametrize("ranked", [True, False])
@pytest.mark.parametrize("step", [1, 50, 100])
def test_with_enough_queries_the_sample_leaves_no_point_out(step: int, ranked: bool) -> None:
    def peeks_once(X: Any, features: Any, point: int) -> Any:
        return X[:, 0] + X[:, 5] if point == step else X[:, 0], models.bought(len(X), 0)

    rng = np.random.default_rng(3)
    X = rng.normal(size=(1800, models.D)).astype(np.float32)
    examples = Examples(X, np.zeros(1800), Queries(np.arange(0, 1801, 6)) if ranked else None)
    found = replay(models.Scripted(peeks_once, 100), examples, PRICES, 0, seed="s")
    assert f"'step': {step}" in found.reason


@pytest.mark.parametrize(("queries", "rows"), [(Queries(np.arange(0, 2001, 5)), 1000), (None, 512)])
def test_the_sample_replaces_cells_of_200_queries_or_of_512_rows(
    queries: Queries | None, rows: int
) -> None:
    replaced = []

    def counts(X: Any, features: Any, point: int) -> Any:
        replaced.append(int(np.isnan(X).any(axis=1).sum()))
        return models.honest(X, features, point)

    X = np.random.default_rng(3).normal(size=(2000, models.D)).astype(np.float32)
    examples, honest = Examples(X, np.zeros(2000), queries), models.Scripted(models.honest)
    counting = nullcontext(models.Scripted(counts))
    replay(honest, examples, PRICES, 0, seed="s", fresh=lambda: counting)
    assert max(replaced) == rows


def test_the_sample_depends_on_the_seed_alone() -> None:
    one = verdict(models.peeks_for_its_scores)
    assert one == verdict(models.peeks_for_its_scores)


def test_a_model_that_raises_on_what_it_did_not_buy_is_caught() -> None:
    def picky(X: Any, features: Any, point: int) -> Any:
        if np.isnan(X[:, 3]).mean() > 0.3:
            raise ValueError("NaN")
        return models.honest(X, features, point)

    found = verdict(picky)
    assert found.word == "failed"
    assert "it raises ValueError: NaN" in found.reason


def test_splits_and_trees_must_not_change_either() -> None:
    class Counting:
        def predict_path(self, features: Any) -> Any:
            n = len(features)
            splits = np.isnan(features.X[:, 5]).astype(float)
            bill = Bill(Acquired.nothing(models.D), splits=splits)
            yield Prediction({}, np.zeros(n), {"path": bill})

    found = replay(Counting(), data(), PRICES, 0, seed="s")
    assert found.word == "failed"
    assert "splits" in found.reason


def test_a_feature_whose_sensors_came_with_another_may_be_read() -> None:
    """Column 5 is derived from 0 and 1: whoever bought both may read it."""
    prices = price_list(np.array([1.0, 2, 3, 4, 5, 0]), derived={5: [0, 1]})

    class Derived:
        def predict_path(self, features: Any) -> Any:
            mask = np.zeros((1, prices.sensors), dtype=bool)
            mask[0, prices.sensors_of(5)] = True
            scores = np.nan_to_num(features.X[:, 5].astype(float))
            yield Prediction({}, scores, {"path": Bill(Acquired.pack(mask))})

    assert replay(Derived(), data(), prices, 0, "full", seed="s").word == "verified"


def test_one_query_alone_can_be_audited() -> None:
    examples = Examples(np.ones((1, models.D), dtype=np.float32), np.zeros(1))
    model = models.Scripted(models.honest)
    assert replay(model, examples, PRICES, 0, seed="s").word == "sampled"
    assert replay(model, examples, PRICES, 0, "full", seed="s").word == "verified"
    peeks = models.Scripted(models.multiplies_by_zero)
    for mode in ("sample", "full"):
        found = replay(peeks, examples, PRICES, 0, mode, seed="s")
        assert "replaced by NaN, its scores change" in found.reason


def test_two_rows_are_never_sampled_together_as_in_the_trial() -> None:
    model, examples = models.Scripted(models.keys_on_size), data(2, ranked=False)
    path = predict_split(model, examples, PRICES, 0)
    found = replay(model, examples, PRICES, 0, seed="s", path=path)
    assert "scores change with the block" in found.reason


def test_of_three_rows_one_is_sampled_as_a_stranger_to_another() -> None:
    """What replaces it is drawn by chance and may be itself, but not for every seed."""
    model, examples = models.Scripted(models.centres_by_block), data(3, ranked=False)
    found = [replay(model, examples, PRICES, 0, seed=seed) for seed in "abcdefgh"]
    assert any("other queries of its block" in one.reason for one in found)


def test_the_full_audit_replaces_the_strangers_of_every_query() -> None:
    """The order of rows and queries does not matter to it, only what stands in its block."""

    def looks_around(X: Any, features: Any, point: int) -> Any:
        scores, mask = models.honest(X, features, point)
        large = len(X) == 15  # no block of the sample is
        return scores + (large and len(np.unique(features.X[:, 1])) < 12), mask

    found = replay(models.Scripted(looks_around), data(15), PRICES, 0, "full", seed="s")
    assert "other queries of its block are replaced, its scores change" in found.reason
    honest = models.Scripted(models.honest)
    assert replay(honest, data(15), PRICES, 0, "full", seed="s").word == "verified"


@pytest.mark.parametrize("ranked", [True, False])
@pytest.mark.parametrize("mode", ["sample", "full"])
def test_a_model_that_scores_by_the_place_in_its_block_is_caught(mode: str, ranked: bool) -> None:
    def counts_rows(X: Any, features: Any, point: int) -> Any:
        return np.arange(len(X), dtype=float), models.bought(len(X))

    model, examples = models.Scripted(counts_rows), data(ranked=ranked)
    path = predict_split(model, examples, PRICES, 0)
    found = replay(model, examples, PRICES, 0, mode, seed="s", path=path)
    assert "its scores change with the block" in found.reason


@pytest.mark.parametrize("mode", ["sample", "full"])
def test_a_model_that_scores_by_the_place_in_the_query_is_caught(mode: str) -> None:
    """Files list a query's documents by grade often enough."""

    def first_is_best(X: Any, features: Any, point: int) -> Any:
        place = np.arange(len(X)) - features.queries.boundaries[features.queries.index()]
        return -place.astype(float), models.bought(len(X))

    model, examples = models.Scripted(first_is_best), data()
    path = predict_split(model, examples, PRICES, 0)
    found = replay(model, examples, PRICES, 0, mode, seed="s", path=path)
    assert "its scores change with the block" in found.reason


def test_a_peek_at_a_single_row_and_point_is_found_by_the_full_audit() -> None:
    examples = data(900, ranked=False)
    examples.X[637, 0] = 9

    def peeks_once(X: Any, features: Any, point: int) -> Any:
        scores, mask = models.honest(X, features, point)
        return scores + ((X[:, 0] == 9) & (point == 2) & np.isnan(X[:, 4])), mask

    found = replay(models.Scripted(peeks_once), examples, PRICES, 0, "full", seed="s")
    assert found.reason.startswith("query 637 at {'step': 2}: where cells it did not pay for")


def test_each_purchase_of_a_query_is_tried_once_and_judged_at_all_its_points() -> None:
    """Thirty points, five different purchases: ten replaced predictions per block, not sixty."""
    calls = []

    def five(X: Any, features: Any, point: int) -> Any:
        calls.append(bool(np.isnan(X[:, 5]).all()))
        return X[:, 0].astype(float), models.bought(len(X), *range(1 + point // 7))

    examples = complete()
    blind = nullcontext(models.Scripted(five, 30))
    honest = models.Scripted(lambda *given: (calls, five(*given))[1], 30)
    assert (
        replay(honest, examples, PRICES, 0, "full", seed="s", fresh=lambda: blind).word
        == "verified"
    )
    assert len(calls) // 30 == 6 + 2 + 10


def test_points_that_change_with_other_queries_are_caught() -> None:
    class Renames:
        def predict_path(self, features: Any) -> Any:
            bill = Bill(Acquired.pack(models.bought(len(features), 0)))
            threshold = float(np.nanmedian(features.X[:, 0]))
            yield Prediction({"threshold": threshold}, np.zeros(len(features)), {"path": bill})

    found = replay(Renames(), data(), PRICES, 0, "full", seed="s")
    assert "its path changes with the block" in found.reason


def test_the_query_that_gave_the_model_away_is_named_by_its_number_in_the_split() -> None:
    """Query 1601 stands in the second block of 8000 rows."""
    examples = data(8010)
    examples.X[8005:, 0] = 9

    def peeks_there(X: Any, features: Any, point: int) -> Any:
        scores, mask = models.honest(X, features, point)
        return scores + np.where((X[:, 0] == 9) & (point == 2), np.isnan(X[:, 5]), 0.0), mask

    found = replay(models.Scripted(peeks_there), examples, PRICES, 0, "full", seed="s")
    assert found.reason == (
        "query 1601 at {'step': 2}: where cells it did not pay for are replaced by NaN, "
        "its scores change"
    )


def test_the_full_audit_tells_how_far_it_is_in_rows() -> None:
    """Half of 100 rows are done by the first of two different purchases."""
    seen: list[tuple[int, int]] = []
    model, examples = models.Scripted(models.honest), data(100)
    replay(
        model, examples, PRICES, 0, "full", progress=lambda done, total: seen.append((done, total))
    )
    assert seen == [(50, 100), (100, 100)]
    seen.clear()
    verdict(models.honest, "full", progress=lambda done, total: seen.append((done, total)))
    assert seen == [(300, 600), (600, 600)]
