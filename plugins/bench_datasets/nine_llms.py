"""Nine language models on three benchmarks: recorded answers, confidences and bills.

M. J. Zellinger, M. Thomson, "Rational tuning of LLM cascades via probabilistic modeling" (2025).
Its repository has one call of each model for each question of MMLU (validation and dev), MedMCQA
and TruthfulQA. A call is one sensor: the answer (a letter; for TruthfulQA its length), the
log-probability as confidence, and its own price in millionths of a dollar. Free are the benchmark's
subject and statistics of the prompt. Prices of MMLU and MedMCQA follow from the prompt's length and
are quoted. Those of TruthfulQA are known afterwards: they include a second call for the confidence.

All rows are pooled, as the publisher's training and test rows come from different splits of the
benchmarks. A random half is the test set; 30% of the other half validates. Rows with the same
prompt stay together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bench_core import InputError, Source, Splits, Task, provide_datasets
from bench_core.arrays import FloatArray
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
from bench_datasets._plain_pickle import read_pickle

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

CHAINS: Mapping[str, Mapping[str, str]] = {
    "llama_chain": {
        "llama3.2-1b": "llama1b",
        "llama3.2-3b": "llama3b",
        "llama3.1-8b": "llama8b",
        "llama3.1-70b": "llama70b",
        "llama3.1-405b": "llama405b",
    },
    "qwen_oai_chain": {
        "gpt-4o-mini": "gpt4omini",
        "qwen2.5-32b-coder-instruct": "qwen32b",
        "qwen2.5-72b-instruct": "qwen72b",
        "gpt-4o": "gpt4o",
    },
}
"""Names in the publisher's files -> ours."""
MODELS = tuple(name for chain in CHAINS.values() for name in chain.values())
LETTERS = "ABCD"
UNIT = "micro-USD"
_RECORDED = ("model_answers", "raw_confidences", "model_correctness", "model_costs")
_IGNORED = ("niagara.chain.ChainResponse", "hcma.chain.ChainResponse")  # repeats the lists
_NO_CONFIDENCE = -100.0  # for minus infinity; all others are above -20


def _files(benchmark: str) -> tuple[str, ...]:
    """Our table, or the publisher's files."""
    parts = ("train", "test")
    return (
        f"llm/{benchmark}.csv",
        *(f"{benchmark}/{benchmark}_{part}.pkl" for part in parts),
        *(_chain_file(benchmark, chain, part) for chain in CHAINS for part in parts),
    )


def _chain_file(benchmark: str, chain: str, part: str) -> str:
    return f"{benchmark}/chain_results/{benchmark}_full_{chain}_results_{part}.pkl"


class _Nine(Logged):
    """One benchmark's answers."""

    home: ClassVar[str] = "rational-llm-cascades"
    homepage: ClassVar[str] = "https://github.com/mzelling/rational-llm-cascades (benchmarks/data)"
    licence: ClassVar[str] = "none stated"
    code: ClassVar[tuple[str, ...]] = (*Logged.code, "bench_datasets._plain_pickle")
    task: ClassVar[Task]
    label: ClassVar[str] = ""
    """The publisher's key of the right answer."""
    subject: ClassVar[str] = "subject"
    """The publisher's key of the subject."""

    def published(self, source: Source) -> pd.DataFrame:
        """Return our table, made of the publisher's files."""
        import pandas as pd

        benchmark = self.files[1].partition("/")[0]
        tables, prompts = [], []
        for split, file in zip(("train", "test"), self.files[1:3], strict=True):
            path = source.find(file)
            questions = read_pickle(path)
            n = len(questions) if isinstance(questions, list) else -1
            rows: dict[str, Any] = {}
            for chain, names in CHAINS.items():
                of_chain = source.find(_chain_file(benchmark, chain, split))
                recorded = read_pickle(of_chain, _IGNORED)
                try:
                    texts = [str(prompt) for prompt in recorded["user_prompts"]]
                    for published, model in names.items():
                        values = [recorded[key][published] for key in _RECORDED]
                        if {n} != {*map(len, values), len(texts)}:
                            raise ValueError(f"other numbers of rows than {path.name}")
                        rows |= self._call(model, *values)
                except (KeyError, TypeError, ValueError) as error:
                    what = f"not the publisher's answers ({error})"
                    raise InputError(f"{of_chain}: {what}; get the file again") from None
            try:
                rows["subject"] = [str(question[self.subject]) for question in questions]
                if self.label:
                    rows["label"] = [LETTERS[question[self.label]] for question in questions]
            except (KeyError, TypeError, IndexError) as error:
                what = f"not the publisher's questions ({type(error).__name__}: {error})"
                raise InputError(f"{path}: {what}; get the file again") from None
            tables.append(pd.DataFrame(rows))
            prompts += texts
        text = pd.DataFrame({"group": first_rows(prompts), **text_columns(prompts)})
        return pd.concat([text, pd.concat(tables, ignore_index=True)], axis=1)

    def _call(
        self,
        model: str,
        answers: Sequence[str],
        confidences: Sequence[float],
        right: Sequence[bool],
        dollars: Sequence[float],
    ) -> dict[str, Any]:
        """Return the columns of one model's calls."""
        texts = [str(answer).strip() for answer in answers]
        answer: dict[str, Any] = {f"{model}_answer_chars": [*map(len, texts)]}
        if self.label:
            letters = [text[:1] if text[:1] in LETTERS else "" for text in texts]
            answer = {f"{model}_answer": [letter or None for letter in letters]}
        return {
            **answer,
            f"{model}_confidence": np.array(confidences, dtype=np.float64),
            f"{model}_correct": [int(correct) for correct in right],
            f"{model}_price": 1e6 * np.array(dollars, dtype=np.float64),
        }

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Draw the halves by ``seed``; every size uses all rows."""
        path, frame = self.table(source, lambda: self.published(source))
        answer = "answer" if self.label else "answer_chars"
        sensors = [
            Sensor(f"{m}_price", (f"{m}_{answer}", f"{m}_confidence"), bool(self.label))
            for m in MODELS
        ]
        columns = [name for sensor in sensors for name in (*sensor.columns, sensor.price)]
        correct = [f"{m}_correct" for m in MODELS]
        letter = self.task is Task.MULTICLASS
        truth = ["label"] if letter else correct
        require(path, frame, ("group", "subject", *TEXT, *columns, *truth))
        for m in MODELS:
            raw = frame[f"{m}_confidence"].to_numpy(np.float64)
            frame[f"{m}_confidence"] = np.where(np.isneginf(raw), _NO_CONFIDENCE, raw)
        y = frame[correct].to_numpy(np.float64) if not letter else _letters(path, frame["label"])
        group = frame["group"].to_numpy(np.int64)
        return splits(
            frame, y, halves(group, seed), ("subject", *TEXT), sensors, UNIT, group,
            class_names=tuple(LETTERS) if letter else MODELS,
        )  # fmt: skip


def _letters(path: Path, labels: pd.Series[Any]) -> FloatArray:
    wrong = ~labels.isin([*LETTERS])
    if wrong.any():
        row = int(np.argmax(wrong))
        what = f"row {row + 1}: label {labels.iloc[row]!r:.40} is not one of {', '.join(LETTERS)}"
        raise InputError(f"{path}, {what}; get the file again")
    return np.array([LETTERS.index(letter) for letter in labels], dtype=np.float64)


class Mmlu(_Nine):
    """Which of nine models answers a question of MMLU: scores are 1 for the right letter.

    A call yields the letter and its log-probability, at a quoted price. Needs llm/mmlu.csv or the
    publisher's six files.
    """

    name: ClassVar[str] = "nine-llms-mmlu"
    task: ClassVar[Task] = Task.CHOICE
    title: ClassVar[str] = "nine language models' answers on MMLU, billed by the token"
    files = _files("mmlu")
    label = "answer"


class MedMcqa(_Nine):
    """Which of nine models answers a question of MedMCQA: scores are 1 for the right letter.

    A call yields the letter and its log-probability, at a quoted price. Needs llm/medmcqa.csv or
    the publisher's six files.
    """

    name: ClassVar[str] = "nine-llms-medmcqa"
    task: ClassVar[Task] = Task.CHOICE
    title: ClassVar[str] = "nine language models' answers on MedMCQA, billed by the token"
    files = _files("medmcqa")
    label = "cop"
    subject = "subject_name"


class TruthfulQa(_Nine):
    """Which of nine models answers a question of TruthfulQA: scores are a language model's verdict.

    A call yields the length of the answer and the log-probability of the model's own verdict on it,
    at a price that is known afterwards. One of nine right may be luck: the oracle is out of reach.
    Needs llm/truthfulqa.csv or the publisher's six files.
    """

    name: ClassVar[str] = "nine-llms-truthfulqa"
    task: ClassVar[Task] = Task.CHOICE
    title: ClassVar[str] = "nine language models' answers on TruthfulQA, billed by the token"
    files = _files("truthfulqa")
    subject = "category"


class MmluLetter(Mmlu):
    """The right letter of a question of MMLU, from the answers of nine models.

    As nine-llms-mmlu, but the answers may be combined.
    """

    name: ClassVar[str] = "nine-llms-mmlu-letter"
    task: ClassVar[Task] = Task.MULTICLASS


class MedMcqaLetter(MedMcqa):
    """The right letter of a question of MedMCQA, from the answers of nine models.

    As nine-llms-medmcqa, but the answers may be combined.
    """

    name: ClassVar[str] = "nine-llms-medmcqa-letter"
    task: ClassVar[Task] = Task.MULTICLASS


bench_datasets = provide_datasets(Mmlu, MedMcqa, TruthfulQa, MmluLetter, MedMcqaLetter)
