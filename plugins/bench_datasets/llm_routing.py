"""Which language model to ask: recorded answers of RouteLLM and LLMRouter, right or wrong.

I. Ong et al., "RouteLLM: learning to route LLMs with preference data" (2024): Mixtral 8x7B and
GPT-4 (1106) on MMLU and GSM8K. Prices are estimates from list prices: 1.15 tokens for each word or
sign of the prompt, at .6 and 10 dollars per million, and for GSM8K of the answer too, at .6 and 30,
which is known only afterwards. The publisher's calls had 5 and 8 examples in front of the prompt,
which the prices leave out. Prompts that the publisher calls contaminated are left out.

T. Feng et al., LLMRouter (2025): scores of nine models on 14 benchmarks. Prices are a quarter token
for each character of the prompt, at .1, .2 or .9 dollars per million.

The answers themselves are not inputs; a call only pays for one. RouteLLM's ``domain`` and
LLMRouter's ``task`` name the part of the benchmark: a router that reads them is told which test it
takes. ``domain=false`` and
``named_task=false`` leave them out. A random half is the test set; 30% of the
other half validates. Rows with the same prompt stay together.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bench_core import InputError, Source, Splits, Task, param, provide_datasets
from bench_core.arrays import FloatArray
from bench_core.datasets.readers.tables import read_table
from bench_datasets._logged_calls import (
    TEXT,
    Logged,
    Sensor,
    first_rows,
    halves,
    require,
    splits,
    text_columns,
)

if TYPE_CHECKING:
    import pandas as pd

_NAMES = (
    "abstract_algebra anatomy astronomy business_ethics clinical_knowledge college_biology "
    "college_chemistry college_computer_science college_mathematics college_medicine "
    "college_physics computer_security conceptual_physics econometrics electrical_engineering "
    "elementary_mathematics formal_logic global_facts high_school_biology high_school_chemistry "
    "high_school_computer_science high_school_european_history high_school_geography "
    "high_school_government_and_politics high_school_macroeconomics high_school_mathematics "
    "high_school_microeconomics high_school_physics high_school_psychology "
    "high_school_statistics high_school_us_history high_school_world_history human_aging "
    "human_sexuality international_law jurisprudence logical_fallacies machine_learning "
    "management marketing medical_genetics miscellaneous moral_disputes moral_scenarios nutrition "
    "philosophy prehistory professional_accounting professional_law professional_medicine "
    "professional_psychology public_relations security_studies sociology us_foreign_policy "
    "virology world_religions"
)
DOMAINS = tuple(_NAMES.split())
EVALS = "routellm/evals"
TWO = {"mixtral": "mixtral-8x7b-instruct-v0.1", "gpt4": "gpt-4-1106-preview"}
"""Models of RouteLLM: our name -> the publisher's column."""
TOKENS = 1.15
"""Tokens for each word or sign, a guess."""
IN, OUT = {"mixtral": 0.6, "gpt4": 10.0}, {"mixtral": 0.6, "gpt4": 30.0}
"""List prices, dollars per million tokens."""
NINE = {
    "gemma9b": ("gemma-2-9b-it", 0.1),
    "llama8b": ("llama-3.1-8b-instruct", 0.2),
    "qwen7b": ("qwen2.5-7b-instruct", 0.2),
    "mistral7b": ("mistral-7b-instruct-v0.3", 0.2),
    "codegemma7b": ("codegemma-7b", 0.2),
    "chatqa8b": ("llama3-chatqa-1.5-8b", 0.2),
    "nemotron51b": ("llama-3.1-nemotron-51b-instruct", 0.9),
    "nemotron49b": ("llama-3.3-nemotron-super-49b-v1", 0.9),
    "chatqa70b": ("llama3-chatqa-1.5-70b", 0.9),
}
"""Models of LLMRouter: our name -> the publisher's name, dollars per million tokens."""


def json_lines(path: Path, keys: Sequence[str]) -> list[dict[str, Any]]:
    """Return the objects of a file of JSON, a list or one a line.

    Raises InputError if one is no object or lacks a key.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    try:
        rows = json.loads("".join(lines)) if lines[:1] == ["["] else [*map(json.loads, lines)]
    except ValueError as error:
        raise InputError(f"{path}: not JSON ({error}); get the file again") from None
    for k, row in enumerate(rows, start=1):
        if not isinstance(row, dict) or any(key not in row for key in keys):
            what = f"row {k} lacks {', '.join(keys)}"
            raise InputError(f"{path}: {what}; get the file again")
    return rows


def tokens(texts: Iterable[str]) -> FloatArray:
    """Return the guessed numbers of tokens (n,)."""
    return TOKENS * np.array([len(re.findall(r"\w+|[^\w\s]", text)) for text in texts])


def routellm(source: Source, tests: Mapping[str, str], answers: bool) -> pd.DataFrame:
    """Return RouteLLM's table: ``tests`` are its files by domain; their answers are priced too."""
    import pandas as pd

    folder = "gsm8k" if answers else "mmlu"
    dropped = source.find(f"{EVALS}/{folder}/contaminated_prompts.jsonl")
    contaminated = {row["eval_prompt"] for row in json_lines(dropped, ["eval_prompt"])}
    tables = []
    for domain, file in tests.items():
        path = source.find(file)
        frame = read_table(path, text=("prompt",)).frame
        told = [f"{name}_response" for name in TWO.values()] if answers else []
        require(path, frame, ("prompt", *TWO.values(), *told))
        tables.append(frame.assign(domain=domain))
    frame = pd.concat(tables, ignore_index=True)
    prompts = frame["prompt"].tolist()
    columns: dict[str, Any] = {
        "domain": frame["domain"],
        "group": first_rows(prompts),
        "contaminated": [int(prompt in contaminated) for prompt in prompts],
        **text_columns(prompts),
    }
    for model, published in TWO.items():
        columns[f"right_{model}"] = frame[published].astype(int)
        columns[f"{model}_price"] = tokens(prompts) * IN[model]
        if answers:
            spoken = tokens(frame[f"{published}_response"].fillna("").astype(str))
            columns[f"{model}_metered"] = columns[f"{model}_price"] + spoken * OUT[model]
    return pd.DataFrame(columns)


def llmrouter(source: Source) -> pd.DataFrame:
    """Return LLMRouter's table of training and test questions."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    task: dict[str, str] = {}
    for half in ("train", "test"):
        path = source.find(f"data/dcrouter_preprocessed/{half}.json")
        for row in json_lines(path, ["question", "scores"]):
            if {*row["scores"]} != {published for published, _ in NINE.values()}:
                what = f"scores of {', '.join(row['scores'])}"[:100]
                raise InputError(f"{path}: {what}, not of nine models; get the file again")
            rows.append(row)
        queries = source.find(f"data/example_data/query_data/default_query_{half}.jsonl")
        for query in json_lines(queries, ["query", "task_name"]):
            task.setdefault(query["query"], query["task_name"])
    prompts = [row["question"] for row in rows]
    if lost := [prompt for prompt in prompts if prompt not in task]:
        raise InputError(
            f"{queries.parent}: {len(lost)} questions have no task there, such as {lost[0]!r:.60}; "
            "get the files again"
        )
    columns: dict[str, Any] = {
        "group": first_rows(prompts),
        "task": [task[prompt] for prompt in prompts],
        **text_columns(prompts),
    }
    for model, (published, price) in NINE.items():
        columns[f"{model}_score"] = [float(row["scores"][published]) for row in rows]
        columns[f"{model}_price"] = np.array([len(prompt) / 4 * price for prompt in prompts])
    return pd.DataFrame(columns)


def _choice(
    path: Path,
    frame: pd.DataFrame,
    scores: Sequence[str],
    prices: Sequence[str],
    models: Sequence[str],
    free: Sequence[str],
    quoted: bool,
    seed: int,
) -> Splits:
    """Return the choice among ``models``, whose calls yield nothing but their answers."""
    require(path, frame, ("group", *TEXT, *free, *scores, *prices))
    frame = frame.assign(**dict.fromkeys(models, 1.0))
    group = frame["group"].to_numpy(np.int64)
    parts = halves(group, seed)
    if "contaminated" in frame:
        clean = (frame["contaminated"] == 0).to_numpy()
        parts = [rows[clean[rows]] for rows in parts]
    sensors = [Sensor(price, (model,), quoted) for price, model in zip(prices, models, strict=True)]
    y = frame[[*scores]].to_numpy(np.float64)
    return splits(
        frame, y, parts, (*free, *TEXT), sensors, "micro-USD", group, class_names=tuple(models),
    )  # fmt: skip


class _RouteLlm(Logged):
    task: ClassVar[Task] = Task.CHOICE
    home: ClassVar[str] = "RouteLLM"
    homepage: ClassVar[str] = "https://github.com/lm-sys/RouteLLM"
    licence: ClassVar[str] = "Apache-2.0"


_MMLU_FILES = {domain: f"{EVALS}/mmlu/responses/mmlu_{domain}.csv" for domain in DOMAINS}
_GSM8K = f"{EVALS}/gsm8k/gsm8k_responses.csv"


@dataclass(frozen=True)
class RouteLlmMmlu(_RouteLlm):
    """Mixtral or GPT-4 for a question of MMLU, at quoted prices.

    Needs routing/routellm-mmlu.csv or the publisher's 57 tables and contaminated_prompts.jsonl.
    """

    name: ClassVar[str] = "routellm-mmlu"
    title: ClassVar[str] = "Mixtral or GPT-4 for questions of MMLU, by estimated list prices"
    files: ClassVar[tuple[str, ...]] = (
        "routing/routellm-mmlu.csv",
        *_MMLU_FILES.values(),
        f"{EVALS}/mmlu/contaminated_prompts.jsonl",
    )

    domain: bool = param(True, "read the domain, which tells the router which test it takes")

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Draw the halves by ``seed``; every size uses all rows."""
        path, frame = self.table(source, lambda: routellm(source, _MMLU_FILES, False))
        scores, prices = ([f"{a}{m}{b}" for m in TWO] for a, b in (("right_", ""), ("", "_price")))
        free = ["domain"] if self.domain else []
        return _choice(path, frame, scores, prices, [*TWO], free, True, seed)


@dataclass(frozen=True)
class RouteLlmGsm8k(_RouteLlm):
    """Mixtral or GPT-4 for a question of GSM8K, at prices that are known afterwards.

    Needs routing/routellm-gsm8k.csv or the publisher's gsm8k_responses.csv and
    contaminated_prompts.jsonl.
    """

    name: ClassVar[str] = "routellm-gsm8k"
    title: ClassVar[str] = "Mixtral or GPT-4 for questions of GSM8K, by estimated list prices"
    files: ClassVar[tuple[str, ...]] = (
        "routing/routellm-gsm8k.csv",
        _GSM8K,
        f"{EVALS}/gsm8k/contaminated_prompts.jsonl",
    )

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Draw the halves by ``seed``; every size uses all rows."""
        path, frame = self.table(source, lambda: routellm(source, {"": _GSM8K}, True))
        scores = [f"right_{model}" for model in TWO]
        prices = [f"{model}_metered" for model in TWO]
        return _choice(path, frame, scores, prices, [*TWO], (), False, seed)


@dataclass(frozen=True)
class LlmRouter(Logged):
    """Which of nine models answers a question of 14 benchmarks, at quoted prices of the prompt.

    Needs routing/llmrouter9.csv or the publisher's four files.
    """

    name: ClassVar[str] = "llmrouter"
    task: ClassVar[Task] = Task.CHOICE
    title: ClassVar[str] = "nine language models' scores on 14 benchmarks, by list prices"
    home: ClassVar[str] = "LLMRouter"
    homepage: ClassVar[str] = "https://github.com/ulab-uiuc/LLMRouter"
    licence: ClassVar[str] = "MIT"
    files: ClassVar[tuple[str, ...]] = (
        "routing/llmrouter9.csv",
        *(f"data/dcrouter_preprocessed/{part}.json" for part in ("train", "test")),
        *(f"data/example_data/query_data/default_query_{p}.jsonl" for p in ("train", "test")),
    )

    named_task: bool = param(True, "read the task, which tells the router which test it takes")

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Draw the halves by ``seed``; every size uses all rows."""
        path, frame = self.table(source, lambda: llmrouter(source))
        scores, prices = ([f"{model}_{of}" for model in NINE] for of in ("score", "price"))
        free = ["task"] if self.named_task else []
        return _choice(path, frame, scores, prices, [*NINE], free, True, seed)


bench_datasets = provide_datasets(RouteLlmMmlu, RouteLlmGsm8k, LlmRouter)
