"""Naive Bayes with a latent class."""

import numpy as np
from bench_methods.aaco.latent_bayes import LatentBayes, fit_latent_bayes, masked_loss
from bench_models.masked_predictor import training_copies
from helpers.fakes import FakeContext
from helpers.priced_cases import switched
from scipy.special import logsumexp
from scipy.stats import norm
from sklearn.naive_bayes import GaussianNB

from bench_core import Examples, Prices, Task

PRICES = Prices.additive(np.ones(3))


def test_scores_are_the_sums_of_densities_over_the_bought_cells():
    rng = np.random.default_rng(0)
    latent, labels, d = 2, 3, 4
    shape = d, latent * labels
    model = LatentBayes(
        rng.normal(size=d),
        rng.uniform(1, 2, d),
        rng.normal(size=shape),
        rng.uniform(0.5, 2, shape),
        np.log(rng.dirichlet(np.ones(shape[1]))),
        labels,
        1.0,
    )
    cells = rng.normal(size=(5, d)).astype(np.float32)
    cells[[0, 1, 1], [2, 0, 3]] = np.nan
    z = (cells - model.centre) / model.spread
    each = norm.logpdf(z[:, :, None], model.mean, np.sqrt(model.variance))
    joint = np.nansum(each, axis=1) + model.prior
    expected = logsumexp(joint.reshape(5, latent, labels), axis=1)
    found = model.scores(cells, np.ones((5, d), bool))
    expected -= expected[:, :1]
    assert np.allclose(found - found[:, :1], expected, atol=1e-5)


def test_one_latent_class_is_naive_bayes(monkeypatch):
    monkeypatch.setattr("bench_methods.aaco.latent_bayes.LATENT", (1,))
    monkeypatch.setattr("bench_methods.aaco.latent_bayes.TEMPERATURES", (1.0,))
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 5000)
    X = (rng.normal(size=(5000, 3)) + np.eye(3)[y]).astype(np.float32)
    rows = Examples(X, y.astype(np.float64))
    context = FakeContext(Task.MULTICLASS, 3)
    predictor = fit_latent_bayes(training_copies(rows, 0), rows, PRICES, context, 2)
    found = predictor.scores(X, np.ones((5000, 3), bool))
    peer = GaussianNB().fit(X, y).predict_log_proba(X)
    assert np.abs(found - logsumexp(found, axis=1, keepdims=True) - peer).mean() < 0.05


def test_a_latent_class_finds_which_feature_counts():
    train, valid, test = (switched(n, seed, 3, 3.0) for seed, n in enumerate((600, 200, 2000)))
    context = FakeContext(Task.BINARY, 2)
    copies = training_copies(train, 0)
    predictor = fit_latent_bayes(copies, valid, PRICES, context, 2)

    def right(columns):
        bought = np.isin(np.arange(3), columns)[None].repeat(len(test), axis=0)
        cells = np.where(bought, test.X, np.float32(np.nan))
        return float(np.mean((predictor.scores(cells, bought) > 0) == test.y))

    assert abs(right([0]) - 0.5) < 0.05
    # with the context the sign of one column decides: Phi(1.5) = 0.933
    assert right([0, 1, 2]) > 0.91
    assert right([1, 2]) < 0.89
    own = predictor.cross_fitted(copies.X, np.ones((600, 3), bool), predictor.parts_of(copies))
    assert np.mean((own > 0) == copies.y) > 0.9
    assert masked_loss(predictor, test, PRICES, 0) < np.log(2) - 0.1
