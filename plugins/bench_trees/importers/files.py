"""Model files, recognised by their content."""

import json
from collections.abc import Iterator, Mapping
from itertools import repeat
from typing import Any

import numpy as np

from bench_trees.importers.catboost import from_catboost
from bench_trees.importers.imported import Imported, ModelError
from bench_trees.importers.lightgbm import from_lightgbm
from bench_trees.importers.xgboost import from_xgboost

KNOWN = "LightGBM's text, XGBoost's JSON or UBJ, CatBoost's JSON"

_REMEDIES = {
    b"CBM1": "CatBoost's binary form: write it by save_model('model.json', format='json')",
    b"binf": "XGBoost's old binary form: load it and write it by save_model('model.json')",
    b"bs64": "XGBoost's old binary form: load it and write it by save_model('model.json')",
    b"\x80": "a pickle, which may run any program: write it by the library's own save_model",
    b"PK": "an archive, not a model",
}
_NUMBERS = {"i": ">i1", "U": ">u1", "I": ">i2", "l": ">i4", "L": ">i8", "d": ">f4", "D": ">f8"}
_WORDS = {"T": True, "F": False, "Z": None}


def read_model(data: bytes) -> Imported:
    """The model in a file's bytes; raises a one-line ModelError for anything else."""
    for start, remedy in _REMEDIES.items():
        if data.startswith(start):
            raise ModelError(f"it is {remedy}")
    try:
        if data.lstrip()[:4] == b"tree":
            return from_lightgbm(data.decode().lstrip())
        if len(data) > 2 and data[:1] == b"{" and chr(data[1]) in "iUIlL$#":  # a key's length
            return _from_document(parse_ubj(data))
        if data.lstrip()[:1] in (b"{", b"["):
            return _from_document(json.loads(data))
    except UnicodeDecodeError:
        raise ModelError("it is not valid UTF-8 text") from None
    except (json.JSONDecodeError, RecursionError) as error:
        raise ModelError(f"its JSON is broken ({error})") from None
    if data.lstrip()[:8] == b"booster[":
        raise ModelError("it is XGBoost's text dump: write the model by save_model('model.json')")
    raise ModelError(f"it is not one of {KNOWN}")


def _from_document(document: Any) -> Imported:
    if isinstance(document, Mapping):
        if "learner" in document:
            return from_xgboost(document)
        if "features_info" in document:
            return from_catboost(document)
        if "tree_info" in document:
            raise ModelError(
                "it is LightGBM's JSON dump: write the text by save_model('model.txt')"
            )
    trees = document if isinstance(document, list) else [document]
    if trees and all(isinstance(tree, Mapping) and "nodeid" in tree for tree in trees):
        raise ModelError(
            "it is XGBoost's dump, which lacks the base score: write the model by "
            "save_model('model.json')"
        )
    raise ModelError(f"it is not one of {KNOWN}")


def parse_ubj(data: bytes) -> Any:
    """The value in the bytes; typed arrays as numpy arrays. Raises ModelError."""
    try:
        return _Reader(data).value()
    except (LookupError, ValueError, OverflowError, RecursionError) as error:
        raise ModelError(f"it is not UBJ, or cut short ({type(error).__name__}: {error})") from None


class _Reader:
    """Universal Binary JSON as written by XGBoost (draft 12, typed arrays, big-endian)."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def next_is(self, mark: bytes) -> bool:
        """Step over the mark if it comes next; return True if it did."""
        found = self.data[self.at : self.at + 1] == mark
        self.at += found
        return found

    def mark(self) -> str:
        """The next mark except N, a no-op."""
        while self.next_is(b"N"):
            pass
        self.at += 1
        return chr(self.data[self.at - 1])

    def take(self, length: int) -> bytes:
        if not 0 <= length <= len(self.data) - self.at:
            raise ValueError("a length beyond the end")
        self.at += length
        return self.data[self.at - length : self.at]

    def numbers(self, mark: str, count: int) -> Any:
        dtype = np.dtype(_NUMBERS[mark])
        return np.frombuffer(self.take(count * dtype.itemsize), dtype)

    def length(self) -> int:
        return int(self.numbers(self.mark(), 1)[0])

    def text(self) -> str:
        return self.take(self.length()).decode()

    def value(self) -> Any:
        mark = self.mark()
        if mark in _WORDS:
            return _WORDS[mark]
        if mark in _NUMBERS:
            return self.numbers(mark, 1)[0].item()
        if mark == "C":
            return self.take(1).decode()
        if mark in "SH":
            return self.text()
        if mark == "[":
            if self.next_is(b"$"):  # an array of numbers of one type
                kind = self.mark()
                self.take(1)  # the mark of its length
                return self.numbers(kind, self.length())
            return [self.value() for _ in self.elements(b"]")]
        if mark == "{":
            return {self.text(): self.value() for _ in self.elements(b"}")}
        raise ValueError(f"unknown type {mark!r}")

    def elements(self, end: bytes) -> Iterator[None]:
        """Yield before each element of a list or an object, with a length or up to its end."""
        if self.next_is(b"#"):
            yield from repeat(None, self.length())
            return
        while True:
            while self.next_is(b"N"):
                pass
            if self.next_is(end):
                return
            yield
