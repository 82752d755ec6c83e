"""Recorded answers of RouteLLM and LLMRouter, in the publishers' layouts and in ours."""

import json

import numpy as np
import pytest
from bench_datasets.llm_routing import (
    DOMAINS,
    EVALS,
    NINE,
    TWO,
    LlmRouter,
    RouteLlmGsm8k,
    RouteLlmMmlu,
    llmrouter,
    routellm,
)
from helpers.kit import parts, refused
from helpers.kit import prepared_set as prepared
from helpers.real_cases import needs

from bench_core.datasets.data_folder import DataFolder
from bench_core.errors import InputError


def write_routellm(folder):
    """Two domains with three and one questions, and GSM8K with eight."""
    mmlu, gsm8k = folder / EVALS / "mmlu/responses", folder / EVALS / "gsm8k"
    mmlu.mkdir(parents=True)
    gsm8k.mkdir()
    head = ",".join(["prompt", *TWO.values()])
    rows = {
        "anatomy": 'What?\nA. x,True,False\n"no, 2",False,True\n',
        "virology": "bad,True,True\n",
    }
    for domain, text in rows.items():
        text = text.replace("What?\nA. x", '"What?\nA. x"')
        (mmlu / f"mmlu_{domain}.csv").write_text(f"{head}\n{text}")
    told = ",".join(f"{name}_response" for name in TWO.values())
    lines = [f"how many {k},{k % 2 == 0},True,I say {k}.,{k}" for k in range(8)]
    (gsm8k / "gsm8k_responses.csv").write_text("\n".join([f"{head},{told}", *lines, ""]))
    for place, prompt in ((mmlu.parent, "bad"), (gsm8k, "how many 3")):
        (place / "contaminated_prompts.jsonl").write_text(json.dumps({"eval_prompt": prompt}))
    return {name: f"{EVALS}/mmlu/responses/mmlu_{name}.csv" for name in rows}


def test_routellms_prices_are_words_and_signs_times_list_prices(tmp_path):
    frame = routellm(DataFolder(tmp_path), write_routellm(tmp_path), False)
    assert frame["domain"].tolist() == ["anatomy", "anatomy", "virology"]
    assert frame["right_mixtral"].tolist() == [1, 0, 1]
    assert frame["right_gpt4"].tolist() == [0, 1, 1]
    assert frame["contaminated"].tolist() == [0, 0, 1]
    words = np.array([5, 3, 1])  # What ? A . x; no , 2; bad
    assert frame["mixtral_price"].tolist() == pytest.approx((words * 1.15 * 0.6).tolist())
    assert frame["gpt4_price"].tolist() == pytest.approx((words * 11.5).tolist())
    assert frame["lines"].tolist() == [2, 1, 1]


def test_answers_are_billed_too_and_contaminated_prompts_left_out(tmp_path):
    write_routellm(tmp_path)
    splits = prepared(RouteLlmGsm8k(), tmp_path)
    paid = np.concatenate([part.price_columns for part in parts(splits)])
    assert len(paid) == 7
    # the prompt has 3 words; "I say 3." has 4 and is spoken at .6, a number has 1 at 30
    assert paid[0].tolist() == pytest.approx([1.15 * 0.6 * 7, 1.15 * (30 + 30)])
    assert not splits.cost_model.quoted.any()
    assert splits.class_names == ("mixtral", "gpt4")
    assert splits.calls.tolist() == [splits.feature_names.index(name) for name in TWO]


def write_llmrouter(folder, leave=()):
    data = folder / "data/dcrouter_preprocessed"
    queries = folder / "data/example_data/query_data"
    data.mkdir(parents=True)
    queries.mkdir(parents=True)
    for part, asked in (("train", ["abcd", "abcdefgh", "xyzw", "q1", "q2"]), ("test", ["abcd"])):
        rows = []
        for k, question in enumerate(asked):
            names = [name for name, _ in NINE.values() if name not in leave]
            scores = {name: float((m + k) % 2) for m, name in enumerate(names)}
            rows.append({"question": question, "scores": scores})
        (data / f"{part}.json").write_text(json.dumps(rows, indent=2))
        lines = [{"task_name": f"t{k % 2}", "query": q} for k, q in enumerate(asked)]
        file = queries / f"default_query_{part}.jsonl"
        file.write_text("\n".join(map(json.dumps, [*lines, {"task_name": "t9", "query": "abcd"}])))


def test_llmrouters_tasks_and_prices(tmp_path):
    write_llmrouter(tmp_path)
    frame = llmrouter(DataFolder(tmp_path))
    assert frame["group"].tolist() == [0, 1, 2, 3, 4, 0]  # the test question is a training question
    assert frame["task"].tolist() == ["t0", "t1", "t0", "t1", "t0", "t0"]  # the first task is kept
    assert frame["gemma9b_price"].tolist()[:2] == pytest.approx([0.1, 0.2])
    assert frame["chatqa70b_price"].tolist()[:2] == pytest.approx([0.9, 1.8])
    assert frame["gemma9b_score"].tolist() == [0, 1, 0, 1, 0, 0]
    assert frame["llama8b_score"].tolist() == [1, 0, 1, 0, 1, 1]


def test_scores_are_labels_and_never_features(tmp_path):
    write_llmrouter(tmp_path)
    splits = prepared(LlmRouter(), tmp_path)
    assert splits.train.y.shape[1] == 9
    assert not [name for name in splits.feature_names if "score" in name or "right" in name]
    bare = prepared(LlmRouter(named_task=False), tmp_path)
    assert not [name for name in bare.feature_names if name.startswith("task")]
    assert [name for name in splits.feature_names if name.startswith("task=")]


def test_other_files_are_refused_in_one_line(tmp_path):
    write_llmrouter(tmp_path, leave=["codegemma-7b"])
    router, how = (prepared, LlmRouter(), tmp_path), {"error": InputError}
    refused("not of nine models; get the file again", *router, **how)
    for text, words in (("[\n{}]", "row 1 lacks question, scores"), ("no", "not JSON")):
        (tmp_path / "data/dcrouter_preprocessed/train.json").write_text(text)
        refused(f"train.json: {words}", *router, **how)
    refused("no file routellm/evals/mmlu", prepared, RouteLlmMmlu(), tmp_path, **how)


# of all rows in test halves of seeds 0 to 4, computed apart from this code
SINGLES = [
    (RouteLlmMmlu(), 0, 0.680, 67),
    (RouteLlmMmlu(), 1, 0.804, 1110),
    (RouteLlmGsm8k(), 1, 0.855, None),
    (LlmRouter(), 0, 0.525, 7.9),
    (LlmRouter(), 6, 0.615, 71.2),
]


@pytest.mark.parametrize(("data", "source", "score", "price"), SINGLES)
def test_single_models_are_as_good_and_as_dear_as_in_the_reference(data, source, score, price):
    folder = needs("rowprices")
    tests = [prepared(data, folder, seed=seed).test for seed in range(5)]
    quality = np.mean([test.y[:, source].mean() for test in tests])
    assert quality == pytest.approx(score, abs=0.003)
    if price:
        paid = np.mean([test.price_columns[:, source].mean() for test in tests])
        assert paid == pytest.approx(price, rel=0.01)


def test_there_are_57_domains_in_the_order_of_our_table():
    pd = pytest.importorskip("pandas")
    assert len(DOMAINS) == 57
    path = needs("rowprices/routing") / "routellm-mmlu.csv.gz"
    assert pd.unique(pd.read_csv(path, usecols=["domain"])["domain"]).tolist() == list(DOMAINS)
