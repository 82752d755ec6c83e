"""A policy in PyTorch: a network says for each row which feature to buy next.

One network predicts the label from whatever is bought (cells, and which are known), trained on
random purchases. Another predicts by how much the next purchase would lower the loss; each row buys
the best for its price, as long as that is worth more than the stop says. Greedy acquisition as in
Covert et al., "Learning to maximize mutual information for dynamic feature selection" (ICML 2023),
with a regression on the loss in place of their relaxation.

    cd docs/examples
    bench check -p torch_policy
    bench run --data breast-cancer --learners torch-policy,gbrt -p torch_policy
"""

from dataclasses import dataclass

import numpy as np

from bench_core import STOP, Purchases, Sequential, Task, param, provide_learners


class Policy:
    """Runs the networks of ``arrays``, which also has the prices as shares of that of all."""

    stops, nested = {"price": (1.0, 0.3, 0.1, 0.03, 0.01, 0.0)}, True

    def __init__(self, arrays):
        self.arrays = arrays

    def act(self, cells, bought, left, stop):
        gain = run(self.arrays, "value", cells)  # of each purchase
        worth = np.where(bought, -np.inf, gain / np.maximum(self.arrays["price"], 1e-9))
        return np.where(worth.max(axis=1) > stop, worth.argmax(axis=1), STOP)

    def predict(self, cells, bought):
        return run(self.arrays, "answer", cells)[:, 0]

    def state(self):
        return self.arrays

    @classmethod
    def from_state(cls, state):
        return cls(state)


@dataclass(frozen=True)
class TorchPolicy:
    """Buys purchase by purchase, for each row what promises most for its price."""

    name, tasks = "torch-policy", frozenset({Task.BINARY})
    hidden: int = param(32, "units of the hidden layer", least=1)
    steps: int = param(150, "training steps of each network, on all rows", least=1)

    def fit(self, train, valid, prices, context):
        import torch

        torch.set_num_threads(context.threads)
        draw = torch.Generator().manual_seed(context.seed)  # and no global state
        clean = np.nan_to_num(train.X.astype(float))
        mean, scale = clean.mean(axis=0), clean.std(axis=0) + 1e-9
        x, y, w = (torch.tensor(a) for a in ((train.X - mean) / scale, train.y, train.weights))
        purchases = Purchases.of(prices)
        sets, needs = (torch.tensor(a * 1.0) for a in (purchases.sets, prices.needs.toarray()))
        (k, _), (n, d) = sets.shape, x.shape
        answer, value = (network(torch, d, self.hidden, out, draw) for out in (1, k))

        def cells(bought):
            """The rows (n, d) after these purchases (n, k)."""
            lacking = (1 - (bought @ sets).clamp(max=1)) @ needs.T
            return torch.where(lacking == 0, x, torch.nan)

        def loss(bought):
            score = forward(torch, answer, cells(bought))[:, 0]
            return torch.nn.functional.binary_cross_entropy_with_logits(score, y, reduction="none")

        def random_purchases():
            share = torch.rand(n, 1, generator=draw, dtype=x.dtype)
            return (torch.rand(n, k, generator=draw, dtype=x.dtype) < share).to(x.dtype)

        def train_on(weights, error):
            optimiser = torch.optim.Adam(weights, lr=0.01)
            for step in range(self.steps):
                optimiser.zero_grad()
                ((error() * w).sum() / w.sum()).backward()
                optimiser.step()
                context.progress(step + 1, self.steps)

        def surprise():
            bought = random_purchases()
            following = torch.randint(k, (n, 1), generator=draw)
            with torch.no_grad():
                gain = loss(bought) - loss(bought.scatter(1, following, 1.0))
            told = forward(torch, value, cells(bought)).gather(1, following)[:, 0]
            return (told - gain) ** 2

        train_on(answer, lambda: loss(random_purchases()))
        train_on(value, surprise)
        arrays = {"mean": mean, "scale": scale, "price": purchases.price / (prices.everything or 1)}
        for name, net in (("answer", answer), ("value", value)):
            arrays |= {f"{name}{i}": part.detach().numpy() for i, part in enumerate(net)}
        return Sequential(Policy(arrays), prices)


def network(torch, d, hidden, out, draw):
    """Weights and offsets of two layers, in float64 so that a row scores alike in any block."""
    shapes = ((2 * d, hidden), (hidden,), (hidden, out), (out,))
    made = [torch.randn(s, generator=draw, dtype=torch.float64) / s[0] ** 0.5 for s in shapes]
    return [part.requires_grad_() for part in made]


def forward(torch, net, x):
    """The outputs for rows (n, d) that are NaN where nothing is known."""
    known = ~torch.isnan(x)
    inputs = torch.cat([torch.nan_to_num(x), known.to(x.dtype)], dim=1)
    return torch.relu(inputs @ net[0] + net[1]) @ net[2] + net[3]


def run(arrays, name, cells):
    """The outputs of a trained network for cells as they are bought."""
    import torch

    x = torch.tensor((cells - arrays["mean"]) / arrays["scale"])
    return forward(torch, [torch.tensor(arrays[f"{name}{i}"]) for i in range(4)], x).numpy()


bench_learners = provide_learners(TorchPolicy)
