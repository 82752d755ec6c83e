"""A generative predictor for every set of purchases: naive Bayes with a latent class.

A latent class h = 1..H and the label y explain a row; given both, features are independent:

    p(x, y) = sum_h p(h, y) prod_j N(x_j; m_jhy, v_jhy)

A feature that was not bought drops out of the product. One model thus predicts from any purchases,
without training on masks. With H = 1 it is Gaussian naive Bayes. A latent class finds features that
say nothing about the label alone, but which other features do.

- The latent classes come from EM on the features alone (diagonal covariances, the best of several
  starts of k-means++). The labels' parameters come from its responsibilities.
- Means of a latent class and a label are shrunk to the mean over labels. The shrinkage is the part
  of their variance explained by chance (empirical Bayes; C. Morris, "Parametric empirical Bayes
  inference", JASA 1983). Variances are shrunk by ``PRIOR`` rows to the one within labels.
- H and a temperature of the scores minimise the loss on validation rows, masked at random.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from bench_models.masked_predictor import MaskedPredictor, masked, random_purchases
from bench_models.states import Stored

from bench_core import Evaluated, Examples, FitContext, Prices, Purchases
from bench_core.arrays import BoolArray, Float32Array, FloatArray

LATENT = 1, 2, 3, 5, 8
TEMPERATURES = 1.0, 0.7, 0.5, 0.35, 0.25
ROWS = 10_000  # most training rows
STARTS, ITERATIONS, TOLERANCE = 8, 60, 1e-4
PRIOR, FIRST_PRIOR = 60.0, 5.0
LEAST_VARIANCE = 0.02  # of standardised features
LARGEST = 5.0  # standard deviations from the mean at which cells are clipped
MASKS = 6  # masks per validation row


@dataclass(frozen=True, eq=False)
class LatentBayes(Stored):
    """Densities of d features under hypotheses: latent classes, and labels within each."""

    centre: FloatArray  # (d,)
    spread: FloatArray  # (d,)
    mean: FloatArray  # (d, H * K), standardised
    variance: FloatArray  # (d, H * K)
    prior: FloatArray  # (H * K,), logarithms
    labels: int  # K
    temperature: float

    @property
    def outputs(self) -> int:
        """Number of scores of a row."""
        return 1 if self.labels == 2 else self.labels

    def scores(self, cells: Float32Array, bought: BoolArray) -> FloatArray:
        """Log-odds (n, 1) or logarithms of class probabilities (n, K); unbought cells are NaN."""
        from bench_methods.aaco.kernels import log_joint

        z, constant = standardised(cells, self.centre, self.spread), -np.log(self.variance) / 2
        joint = log_joint(z, self.mean, 0.5 / self.variance, constant, self.prior, self.labels)
        found: FloatArray = self.temperature * joint
        return found[:, 1:] - found[:, :1] if self.labels == 2 else found

    def evaluated(self, prices: Prices) -> Evaluated:
        """Zero: it has no trees."""
        return Evaluated()


@dataclass(frozen=True, eq=False)
class LatentBayesPredictor(MaskedPredictor):
    """The model of all training rows, and one model without each part of them."""

    whole: LatentBayes  # type: ignore[assignment]
    without: Sequence[LatentBayes]  # type: ignore[assignment]


def fit_latent_bayes(
    copies: Examples,
    valid: Examples,
    prices: Prices,
    context: FitContext,
    parts: int,
    least: float = np.inf,
) -> LatentBayesPredictor | None:
    """Fit the predictor for classes on ``copies`` from ``training_copies``.

    None if its ``masked_loss`` on ``valid`` is not below ``least``.
    """
    train = Examples(copies.X[:ROWS], copies.y[:ROWS])
    held = valid if len(valid) else train
    best, count = None, 1
    name = "logistic" if context.classes == 2 else "softmax"
    for latent in LATENT:
        fitted = _fit(train, latent, context)
        for temperature in TEMPERATURES:
            model = replace(fitted, temperature=temperature)
            tried = LatentBayesPredictor(model, [model] * parts, name)
            loss = masked_loss(tried, held, prices, context.seed)
            if loss < least:
                best, least, count = tried, loss, latent
    if best is None:
        return None
    part = best.parts_of(copies)[:ROWS]
    rest = [np.flatnonzero(part != k) if len(train) >= parts else part >= 0 for k in range(parts)]
    fits = [_fit(Examples(train.X[own], train.y[own]), count, context) for own in rest]
    temperature = best.whole.temperature
    return replace(best, without=[replace(fit, temperature=temperature) for fit in fits])


def masked_loss(predictor: MaskedPredictor, rows: Examples, prices: Prices, seed: int) -> float:
    """The mean loss of rows held out of training, with random purchases hidden."""
    purchases, rng = Purchases.of(prices), np.random.default_rng([seed, 2])
    row = np.repeat(np.arange(len(rows)), MASKS)
    bought = random_purchases(purchases, len(row), rng)
    scores = predictor.scores(masked(rows.X[row], bought, purchases, prices), bought)
    return float(np.average(predictor.loss(scores, rows.y[row]), weights=rows.weights[row]))


def moments(X: Float32Array) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation (d,) of the cells present; 0 and 1 where they do not vary."""
    known = ~np.isnan(X)
    count = np.maximum(known.sum(axis=0), 1)
    centre = np.where(known, X, 0).sum(axis=0, dtype=np.float64) / count
    square = np.where(known, X - centre, 0) ** 2
    spread = np.sqrt(square.sum(axis=0) / count)
    return centre, np.where(spread > 0, spread, 1.0)


def standardised(cells: Float32Array, centre: FloatArray, spread: FloatArray) -> Float32Array:
    """Cells in standard deviations from the mean, clipped; NaN stays."""
    z = (cells - centre) / spread
    return np.clip(z, -LARGEST, LARGEST).astype(np.float32)


def _fit(train: Examples, latent: int, context: FitContext) -> LatentBayes:
    """Fit a model with ``latent`` classes."""
    centre, spread = moments(train.X)
    z = standardised(train.X, centre, spread).astype(np.float64)
    present = (~np.isnan(z)).astype(np.float64)
    z = np.where(present > 0, z, 0.0)
    share = _latent_classes(z, present, latent, np.random.default_rng([context.seed, latent]))
    label = train.y.astype(np.int64)[:, None] == np.arange(context.classes)
    each = (share[:, :, None] * label[:, None, :]).reshape(len(z), -1)  # (n, H * K)
    shape = latent, context.classes, z.shape[1]
    count, first, second = (
        (each.T @ cells).reshape(shape) for cells in (present, z * present, z**2 * present)
    )
    rows = np.maximum(count, 1e-9)
    mean, total = first / rows, np.maximum(count.sum(axis=1), 1e-9)
    pooled = first.sum(axis=1) / total
    within = (second - count * mean**2).sum(axis=1) + FIRST_PRIOR
    within = np.maximum(within / (np.maximum(total - context.classes, 1) + FIRST_PRIOR), 1e-6)
    # variance of the labels' means beyond chance, from the analysis of variance
    between = (count * (mean - pooled[:, None]) ** 2).sum(axis=1)
    free = np.maximum(total - (count**2).sum(axis=1) / total, 1e-9)
    signal = np.maximum(0.0, between - (context.classes - 1) * within) / free
    kept = signal[:, None] * count / (signal[:, None] * count + within[:, None])
    mean = pooled[:, None] + kept * (mean - pooled[:, None])
    square = second - 2 * mean * first + mean**2 * count
    variance = (square + PRIOR * within[:, None]) / (count + PRIOR)
    mass = each.sum(axis=0) + 1

    def by_feature(values: FloatArray) -> FloatArray:
        return np.ascontiguousarray(values.reshape(-1, z.shape[1]).T)

    each_feature = by_feature(mean), by_feature(np.maximum(variance, LEAST_VARIANCE))
    prior = np.log(mass / mass.sum())
    return LatentBayes(centre, spread, *each_feature, prior, context.classes, 1.0)


def _latent_classes(
    z: FloatArray, known: FloatArray, latent: int, rng: np.random.Generator
) -> FloatArray:
    """Responsibilities (n, H) of a mixture with diagonal covariances, the best of all starts."""
    best, most, rows = np.ones((1, len(z))), -np.inf, np.hstack([z**2, z, known])
    columns = np.ascontiguousarray(rows.T)
    for _ in range(STARTS if latent > 1 else 0):
        mean = _starts(z, latent, rng)
        variance, prior, before = np.ones_like(mean), np.full(latent, 1 / latent), -np.inf
        for _ in range(ITERATIONS):
            precise = 1 / variance
            factors = precise, -2 * mean * precise, mean**2 * precise + np.log(variance)
            log = np.log(prior)[:, None] - np.hstack(factors) @ columns / 2  # (H, n)
            top = log.max(axis=0)
            share = np.exp(log - top)
            mass = share.sum(axis=0)
            fit, share = float((top + np.log(mass)).mean()), share / mass
            if fit > most:
                best, most = share, fit
            if fit - before < TOLERANCE:
                break
            before = fit
            prior = (share.sum(axis=1) + 1) / (len(z) + latent)
            second, first, count = np.split(share @ rows, 3, axis=1)
            mean = first / (count + 1)
            square = second - 2 * mean * first + mean**2 * count
            variance = np.maximum((square + FIRST_PRIOR) / (count + FIRST_PRIOR), LEAST_VARIANCE)
    return best.T


def _starts(z: FloatArray, latent: int, rng: np.random.Generator) -> FloatArray:
    """Rows (H, d) far from each other (k-means++)."""
    mean = [z[rng.integers(len(z))]]
    far = ((z - mean[0]) ** 2).sum(axis=1)
    for _ in range(latent - 1):
        total = far.sum()
        chosen = rng.choice(len(z), p=far / total) if total > 0 else rng.integers(len(z))
        mean.append(z[chosen])
        far = np.minimum(far, ((z - mean[-1]) ** 2).sum(axis=1))
    return np.array(mean)
