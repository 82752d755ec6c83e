"""Answers of nine language models, in the publisher's layout and in ours."""

import pickle
from itertools import product

import numpy as np
import pandas as pd
import pytest
from bench_datasets.nine_llms import CHAINS, MODELS, MedMcqaLetter, MmluLetter
from helpers.kit import parts, refused
from helpers.kit import prepared_set as prepared
from helpers.real_cases import needs

from bench_core.datasets.data_folder import DataFolder
from bench_core.errors import InputError

RECORDED = ("model_answers", "raw_confidences", "model_correctness", "model_costs")
PROMPTS = ("one 1\ntwo", "ONE  two!", "one 1\ntwo", *(f"prompt {k}" for k in range(3, 8)))


def publish(folder, change=None):
    """Write eight questions of MMLU, six of them for training, as the publisher does."""
    home = folder / "mmlu"
    (home / "chain_results").mkdir(parents=True)
    for part, rows in (("train", range(6)), ("test", range(6, 8))):
        questions = [{"question": "?", "subject": f"s{k % 2}", "answer": k % 4} for k in rows]
        (home / f"mmlu_{part}.pkl").write_bytes(pickle.dumps(questions))
        for c, (chain, names) in enumerate(CHAINS.items()):
            recorded = {"user_prompts": [PROMPTS[k] for k in rows]}
            recorded |= {kind: {name: [] for name in names} for kind in RECORDED}
            for (m, name), k in product(enumerate(names), rows):
                cost = 10 * c + m + k / 8
                sure = np.float64("-inf") if k == 7 else -cost
                cells = ("A", "B.", " C", "none")[k % 4], sure, k == 0, cost / 1e6
                for kind, cell in zip(RECORDED, cells, strict=True):
                    recorded[kind][name].append(cell)
            if change:
                change(recorded)
            file = home / f"chain_results/mmlu_full_{chain}_results_{part}.pkl"
            file.write_bytes(pickle.dumps(recorded))


def test_the_publishers_files_become_the_columns_of_our_table(tmp_path):
    publish(tmp_path)
    frame = MmluLetter().published(DataFolder(tmp_path))
    assert frame["group"].tolist() == [0, 1, 0, 3, 4, 5, 6, 7]
    assert frame["label"].tolist() == [*"ABCDABCD"]
    assert frame["subject"].tolist() == ["s0", "s1"] * 4
    assert frame["chars"].tolist() == [9, 9, 9, *[8] * 5]
    assert frame["digit_share"].tolist() == [0.1111, 0, 0.1111, *[0.125] * 5]
    assert frame["lines"].tolist() == [2, 1, 2, *[1] * 5]
    assert frame["words"].tolist() == [3, 2, 3, *[2] * 5]
    # crc32 of one, 1, two by hand: 7a6c86f1, 83dcefb7, 11ca8a66: columns 1, 7, 6; all minus
    assert frame[[f"w{k}" for k in range(8)]].to_numpy()[0].tolist() == [0, -1, 0, 0, 0, 0, -1, -1]
    assert frame["gpt4omini_answer"].fillna("").tolist() == ["A", "B", "C", ""] * 2
    assert frame["gpt4omini_confidence"].tolist()[5:] == [-10.625, -10.75, -np.inf]
    assert frame["llama3b_price"].tolist()[:3] == pytest.approx([1, 1.125, 1.25], abs=1e-12)
    assert frame["llama405b_correct"].tolist() == [1, *[0] * 7]


def test_a_call_is_one_sensor_of_answer_and_confidence_at_its_own_price(tmp_path):
    publish(tmp_path)
    splits = prepared(MmluLetter(), tmp_path)
    names, needed = splits.feature_names, splits.prices.sensors_of
    assert splits.price_columns == tuple(f"{model}_price" for model in MODELS)
    for k, model in enumerate(MODELS, start=1):
        columns = [j for j, name in enumerate(names) if name.startswith(f"{model}_")]
        assert {name.partition("=")[0] for name in (names[j] for j in columns)} == {
            f"{model}_answer", f"{model}_confidence",
        }  # fmt: skip
        assert all(needed(j).tolist() == [k] for j in columns)
    free = [j for j in range(len(names)) if needed(j).tolist() == [0]]
    assert {names[j].partition("=")[0] for j in free} >= {"subject", "chars", "w7"}
    assert splits.prices.sensor[0] == 0
    sure = names.index("gpt4o_confidence")  # minus infinity in one row
    assert min(part.X[:, sure].min() for part in parts(splits)) == -100
    answers = [name for name in names if "correct" in name or "label" in name]
    assert not answers  # right or wrong is an answer, never an input


@pytest.mark.parametrize("seed", range(5))
def test_rows_with_the_same_prompt_stay_together(seed, tmp_path):
    publish(tmp_path)
    splits = prepared(MmluLetter(), tmp_path, seed=seed)
    price = splits.price_columns.index("llama1b_price")  # eighths of the row's number
    found = [{round(8 * value) for value in p.price_columns[:, price]} for p in parts(splits)]
    assert sorted(row for part in found for row in part) == [*range(8)]
    assert any({0, 2} <= part for part in found)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r.pop("model_costs"), "model_costs"),
        (lambda r: r["model_answers"].clear(), "not the publisher's answers"),
        (lambda r: r["user_prompts"].append("five"), "other numbers of rows than mmlu_train.pkl"),
    ],
)
def test_other_files_are_refused_in_one_line(change, message, tmp_path):
    publish(tmp_path, change)
    words = f"{message}|get the file again"
    refused(words, prepared, MmluLetter(), tmp_path, error=InputError)


def test_an_absent_file_says_where_it_belongs(tmp_path):
    refused("no file mmlu/mmlu_train.pkl", prepared, MmluLetter(), tmp_path, error=InputError)
    assert not MmluLetter().complete(DataFolder(tmp_path))


# accuracy and mean price of all rows in test halves of seeds 0 to 4, computed apart from this code
SINGLES = [
    (MmluLetter(), "llama405b", 0.837, 571),
    (MmluLetter(), "gpt4omini", 0.739, 28.3),
    (MmluLetter(), "qwen72b", 0.826, 173),
    (MedMcqaLetter(), "llama70b", 0.762, 151.7),
    (MedMcqaLetter(), "gpt4o", 0.783, 413),
]


@pytest.mark.parametrize(("data", "model", "accuracy", "price"), SINGLES)
def test_single_models_are_as_good_and_as_dear_as_in_the_reference(data, model, accuracy, price):
    folder = needs("rowprices")
    right, paid = [], []
    for seed in range(5):
        splits = prepared(data, folder, seed=seed)
        columns = [splits.feature_names.index(f"{model}_answer={letter}") for letter in "ABCD"]
        answers = splits.test.X[:, columns]  # missing where no letter came: wrong
        right.append(np.mean(answers[np.arange(len(answers)), splits.test.y.astype(int)] == 1))
        k = splits.price_columns.index(f"{model}_price")
        paid.append(splits.test.price_columns[:, k].mean())
    assert np.mean(right) == pytest.approx(accuracy, abs=0.0015)
    assert np.mean(paid) == pytest.approx(price, rel=0.01)


def test_the_letter_agrees_with_the_judgement_but_for_two_cells():
    """In MedMCQA two answers begin with the right letter and were counted wrong."""
    folder = needs("rowprices/llm")
    for data, cells in ((MmluLetter(), 0), (MedMcqaLetter(), 2)):
        _, frame = data.table(DataFolder(folder.parent), pytest.fail)
        assert isinstance(frame, pd.DataFrame)
        match = [(frame[f"{m}_answer"] == frame["label"]) for m in MODELS]
        judged = [frame[f"{m}_correct"] == 1 for m in MODELS]
        assert sum(int((a != b).sum()) for a, b in zip(match, judged, strict=True)) == cells
