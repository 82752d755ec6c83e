"""A policy in PyTorch: a network says for each row which feature to buy next.

One network predicts the label from whatever is bought (cells and mask), trained on random masks.
Another predicts by how much the next feature would lower the loss; each row buys the best for its
price. Greedy acquisition as in Covert et al., "Learning to maximize mutual information for dynamic
feature selection" (ICML 2023), with a regression on the loss in place of their relaxation.

    cd docs/examples
    bench check -p torch_policy
    bench run --data breast-cancer --learners torch-policy,gbrt -p torch_policy
"""

from dataclasses import dataclass

import numpy as np

from bench_core import Acquired, Bill, Prediction, Task, param, provide_learners


@dataclass(frozen=True)
class TorchPolicy:
    """Buys feature by feature, for each row what promises most for its price."""

    name, tasks = "torch-policy", frozenset({Task.BINARY})
    hidden: int = param(32, "units of the hidden layer", least=1)
    steps: int = param(150, "training steps of each network, on all rows", least=1)
    features: int = param(8, "how many features a row may buy", least=1)

    def fit(self, train, valid, prices, context):
        import torch

        torch.set_num_threads(context.threads)
        draw = torch.Generator().manual_seed(context.seed)  # and no global state
        clean = np.nan_to_num(train.X.astype(float))
        mean, scale = clean.mean(axis=0), clean.std(axis=0) + 1e-9
        x, y, w = (torch.tensor(a) for a in ((clean - mean) / scale, train.y, train.weights))
        d = x.shape[1]
        answer, value = (network(torch, d, self.hidden, out, draw) for out in (1, d))

        def loss(mask):
            score = forward(torch, answer, x * mask, mask)[:, 0]
            return torch.nn.functional.binary_cross_entropy_with_logits(score, y, reduction="none")

        def random_mask():
            share = torch.rand(len(x), 1, generator=draw, dtype=x.dtype)
            return (torch.rand(x.shape, generator=draw, dtype=x.dtype) < share).to(x.dtype)

        def train_on(weights, error):
            optimiser = torch.optim.Adam(weights, lr=0.01)
            for step in range(self.steps):
                optimiser.zero_grad()
                ((error() * w).sum() / w.sum()).backward()
                optimiser.step()
                context.progress(step + 1, self.steps)

        def surprise():
            mask = random_mask()
            with torch.no_grad():
                before = loss(mask)
                bought = torch.randint(d, (len(x),), generator=draw)
                gain = before - loss(mask.scatter(1, bought[:, None], 1.0))
            told = forward(torch, value, x * mask, mask)
            return (told.gather(1, bought[:, None])[:, 0] - gain) ** 2

        train_on(answer, lambda: loss(random_mask()))
        train_on(value, surprise)
        arrays = {"mean": mean, "scale": scale, "price": prices.feature_price()}
        arrays["needs"] = np.array([prices.bought_for(np.array([j])) for j in range(d)])
        for name, net in (("answer", answer), ("value", value)):
            arrays |= {f"{name}{i}": part.detach().numpy() for i, part in enumerate(net)}
        return Policy(arrays, min(self.features, d))


def network(torch, d, hidden, out, draw):
    """Weights and offsets of two layers, in float64 so that a row scores alike in any block."""
    shapes = ((2 * d, hidden), (hidden,), (hidden, out), (out,))
    made = [torch.randn(s, generator=draw, dtype=torch.float64) / s[0] ** 0.5 for s in shapes]
    return [part.requires_grad_() for part in made]


def forward(torch, net, cells, mask):
    """The outputs for cells of which those outside the mask are 0."""
    hidden = torch.relu(torch.cat([cells, mask], dim=1) @ net[0] + net[1])
    return hidden @ net[2] + net[3]


class Policy:
    """The networks as arrays, run by PyTorch. Only cells of bought features are read."""

    def __init__(self, arrays, features):
        self.arrays, self.features = arrays, features

    def predict_path(self, features):
        import torch

        a = self.arrays
        x = torch.tensor((np.nan_to_num(features.X.astype(float)) - a["mean"]) / a["scale"])
        nets = [[torch.tensor(a[f"{n}{i}"]) for i in range(4)] for n in ("answer", "value")]
        mask, price = torch.zeros_like(x), torch.tensor(a["price"] / (a["price"].sum() or 1))
        for k in range(self.features + 1):
            scores = forward(torch, nets[0], x * mask, mask)[:, 0].numpy()
            sensors = mask.numpy() @ a["needs"] > 0
            yield Prediction({"features": k}, scores, {"path": Bill(Acquired.pack(sensors))})
            worth = forward(torch, nets[1], x * mask, mask) / (price + 0.01)
            best = worth.masked_fill(mask > 0, -np.inf).argmax(dim=1, keepdim=True)
            mask = mask.scatter(1, best, 1.0)  # a new mask: the bill above keeps its own

    def state(self):
        return {**self.arrays, "features": self.features}

    @classmethod
    def from_state(cls, state):
        return cls({k: v for k, v in state.items() if k != "features"}, int(state["features"]))


bench_learners = provide_learners(TorchPolicy)
