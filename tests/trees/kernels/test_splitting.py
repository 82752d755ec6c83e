import numpy as np
import pytest
from bench_trees.kernels.packed_codes import codes_of, pack, unpack
from bench_trees.kernels.splitting import Cuts, Owed, Rules, Sums, best_cuts

BITS = 10


def histogram(seed, rows, features, bins, channels):
    """Packed sums of random rows by bin, those of the last one missing, and with two channels
    their hessians, some of which are nearly nothing; the first two features alike."""
    rng = np.random.default_rng(seed)
    gradient = rng.integers(-(2**30), 2**30, rows)
    values = [(gradient << BITS) + 1, (2.0 ** rng.uniform(0, 40, rows)).astype(np.int64)]
    out = np.zeros((channels, features, bins + 1), np.int64)
    for j in range(features):
        codes = rng.integers(0, bins + int(j % 3 == 0), rows)
        for channel in range(channels):
            np.add.at(out[channel, j], codes, values[channel])
    out[:, 1] = out[:, 0]
    return out.reshape(1, channels, -1)


def charged(rng, size):
    """What 30 features owe of all kinds, in all at most about ``size``; some owe nothing."""
    coupled, lazy, split = rng.choice([0.0, 0.5, 1.0], (3, 30)) * rng.random((3, 30)) * size / 3
    return Owed(coupled, lazy[None], split / 300)


def cuts(hist, unit, l2, owed, features):
    """Gains and cuts of these features, without the others."""
    pair = np.array([[0, 300, 0, -1, 0, 0, -1]])
    sums = Sums(hist, np.arange(0, 41 * 31, 41), BITS, np.array([unit, unit]))
    rules = Rules(-1, 5, 0.0, l2, False, False, True, False)
    found = Cuts(np.empty((1, 30)), np.empty((1, 30), np.int32))
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        best_cuts(sums, pair, np.array(features), rules, owed, found)
    return found.gain[0, features], found.cut[0, features]


@pytest.mark.parametrize("share", [0.0, 1.0, 1e9])
@pytest.mark.parametrize("l2", [0.0, 2.5])
@pytest.mark.parametrize("unit", [2.0**-30, 2.0**-900, 2.0**400])
@pytest.mark.parametrize("channels", [1, 2])
def test_skipped_features_never_hold_the_best_split(channels, unit, l2, share):
    """With charges as high as a share of the highest gain; nothing is left out where squares are
    too large or small."""
    left_out = 0
    free = charged(np.random.default_rng(0), 0.0)
    for seed in range(8):
        hist, rng = histogram(seed, 300, 30, 40, channels), np.random.default_rng(seed)
        alone = [cuts(hist, unit, l2, free, [j]) for j in range(30)]
        raw = np.array([gain[0] for gain, _ in alone])
        owed = charged(rng, share * float(raw.max(initial=0, where=np.isfinite(raw))))
        charge = owed.coupled + owed.lazy[0] + owed.split * 300
        gain, cut = cuts(hist, unit, l2, owed, list(range(30)))
        best = int((raw - charge).argmax())
        assert int((gain - charge).argmax()) == best
        assert (gain[best], cut[best]) == (raw[best], alone[best][1][0])
        left_out += int(np.isneginf(gain).sum() - np.isneginf(raw).sum())
    assert (left_out > 100) == (unit == 2.0**-30)


@pytest.mark.parametrize("d", [1, 7, 8, 9, 17])
def test_codes_come_back_from_words(d):
    codes = np.random.default_rng(d).integers(0, 256, (d, 30)).astype(np.uint8)
    words = pack(codes)
    assert unpack(words, d).tolist() == codes.tolist()
    assert [codes_of(words, j).tolist() for j in range(d)] == codes.tolist()
