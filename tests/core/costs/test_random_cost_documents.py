"""JSON cost files of a random grammar: billed as a naive reader bills them, or refused in
one line that names the fault."""

import json
import random
import warnings

import numpy as np
import pytest

from bench_core.costs.cost_file import cost_model, cost_text
from bench_core.costs.shipped import MODELS
from bench_core.errors import InputError

WORDS = (
    "age", "TSH", "costs", "tree", "split", "unit", "shared", "a.b", "x y", "Größe", "T3", "7",
    "f2", "model", "group", 'say "no"', "distance, km", "later", "#n", "price",
)  # fmt: skip
FAULTS = {  # fault: words of the line, {} for the feature
    "twice": "second cost", "negative": "{}|not a number from 0", "text": "{}|not a number from 0",
    "null": "{}|has no price", "truth": "{}|True", "missing": "{}|no cost", "huge": "{}|inf",
    "cut": "not JSON", "key": "unknown key 'cots'|known: costs", "unequal": "share|",
    "two groups": "in two groups|keep one", "circle": "itself derived",
    "length": "later price for each", "stranger": "unknown feature 'zzz'", "unit": "unit is 5",
}  # fmt: skip


class Document:
    """Random prices of ``names``, with groups as lists of their places."""

    def __init__(self, seed):
        rng = self.rng = random.Random(seed)
        self.names = rng.sample(WORDS, rng.randint(5, 12))
        places = [*range(len(self.names))]
        rng.shuffle(places)
        self.price = {j: rng.choice([0, 1, 2.5, 1e-3, 40, 1e6]) for j in places}
        self.parents, self.shared, self.later, self.start = {}, [], {}, []
        self.full = rng.random() < 0.7
        if self.full and rng.random() < 0.6:
            for _ in range(rng.randint(1, 2)):
                child = places.pop()
                self.parents[child] = rng.sample(places[:3], rng.randint(1, 3))
                del self.price[child]
        free = [j for j in places if j in self.price]
        if self.full and len(free) > 3 and rng.random() < 0.6:
            self.shared.append([free.pop(), free.pop()])
            for j in self.shared[0]:
                self.price[j] = self.price[self.shared[0][0]]
        if self.full and len(free) > 2 and rng.random() < 0.6:
            members, drawn = [free.pop(), free.pop()], rng.choice([0.5, 3])
            self.later = {j: self.price[j] for j in members}
            self.price |= {j: price + drawn for j, price in self.later.items()}
            self.start = [drawn]

    def bill(self, features):
        """What a row pays for these features: each measurement once, the first of a visit more."""
        bought, waiting = set(), [*features]
        while waiting:
            j = waiting.pop()
            bought.add(j)
            waiting += self.parents.get(j, [])
        total = 0.0
        for j in bought - set(self.parents):
            group = next((g for g in self.shared if j in g), [j])
            if j == min(set(group) & bought):
                total += self.later.get(j, self.price[j])
        return total + sum(self.start) * bool(bought & set(self.later))

    def faults(self):
        able = {"negative", "text", "null", "truth", "missing", "huge", "cut", "twice"}
        able |= {"key", "stranger", "unit"} if self.full else set()
        able |= {"unequal"} if self.shared else set()
        able |= {"length", "two groups"} if self.later else set()
        return sorted(able | ({"circle"} if self.parents else set()))

    def text(self, fault=""):
        """The file as JSON, with at most one fault, and the feature of the fault."""
        rng, names = self.rng, self.names
        grouped = {*self.later, *(j for group in self.shared for j in group)}
        free = [j for j in self.price if j not in grouped and names[j] != "model"]
        at = rng.choice(free or [*self.price])
        costs: dict = {names[j]: price for j, price in self.price.items()}
        wrong = {"negative": -1, "text": "five", "null": None, "truth": True, "huge": 1e999}
        if fault in wrong:
            costs[names[at]] = wrong[fault]
        if fault == "missing":
            del costs[names[at]]
        document = {"costs": costs, "unit": "EUR", "split": 0.5, "tree": 2}
        document["shared"] = [[names[j] for j in group] for group in self.shared]
        document["derived"] = {names[j]: [names[k] for k in few] for j, few in self.parents.items()}
        members = [names[j] for j in self.later]
        rules = [{"members": members, "later": [*self.later.values()]}] if members else []
        document["discounted"] = rules
        if fault == "unequal":
            at = self.shared[0][0]
            costs[names[at]] += 1
        elif fault == "length":
            rules[0]["later"].append(1)
        elif fault == "two groups":
            document["shared"].append(members)
            costs[members[0]] = costs[members[1]]
            rules[0]["later"] = [self.later[next(iter(self.later))]] * 2
            costs |= dict.fromkeys(members, rules[0]["later"][0] + self.start[0])
        elif fault == "circle":
            child = next(iter(self.parents))
            self.parents[child] = [at]
            document["derived"] |= {names[child]: [names[at]], names[at]: [names[child]]}
        elif fault == "stranger":
            document["derived"]["zzz"] = [names[at]]
        elif fault == "unit":
            document["unit"] = 5
        elif fault == "key":
            document["cots"] = 1
        keys = [key for key in document if document[key] or rng.random() < 0.5]
        rng.shuffle(keys)
        document = {key: document[key] for key in keys} if self.full else costs
        text = json.dumps(document, indent=rng.choice([None, 1]), ensure_ascii=rng.random() < 0.5)
        if fault == "twice":
            word = json.dumps(names[at])
            word = word if word in text else json.dumps(names[at], ensure_ascii=False)
            text = text.replace(f"{word}:", f"{word}: 1, {word}:", 1)
        text = text[: rng.randrange(2, len(text) - 1)] if fault == "cut" else text
        return text, names[at]


def check(seed, path):
    """The fault that was refused, "" if the file was read and billed as it should be."""
    made = Document(seed)
    rng, names = made.rng, made.names
    fault = rng.choice(made.faults()) if rng.random() < 0.4 else ""
    text, feature = made.text(fault)
    path.write_text(text, encoding=rng.choice(["utf-8", "utf-8-sig"]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            costs = cost_model(cost_text(path), names, None, MODELS)
        except InputError as error:
            line = str(error)
            assert fault, f"{seed}: {line}\n{text}"
            assert line.startswith(str(path))
            assert "\n" not in line
            for word in FAULTS[fault].replace("{}", repr(feature)).split("|"):
                assert word in line, f"{seed}: {word} is not in {line}\n{text}"
            return fault
    assert not fault, f"{seed}: read in spite of {fault}\n{text}"
    assert costs.unit == ("EUR" if made.full and '"unit"' in text else "cost")
    for _ in range(20):
        features = sorted(rng.sample(range(len(names)), rng.randint(0, len(names))))
        mask = np.isin(np.arange(len(names)), features)[None]
        bill = float(costs.feature_cost(costs.acquired(mask))[0])
        assert bill == pytest.approx(made.bill(features), rel=1e-12, abs=1e-12), f"{seed}\n{text}"
    return ""


def test_random_documents_are_billed_as_written(tmp_path):
    refused = [check(seed, tmp_path / "c.json") for seed in range(60)]
    assert len(set(refused)) > 8


@pytest.mark.slow
def test_many_random_documents_are_billed_as_written(tmp_path):
    refused = {check(seed, tmp_path / "c.json") for seed in range(60, 1500)}
    assert refused == {*FAULTS, ""}
