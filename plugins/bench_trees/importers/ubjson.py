"""Universal Binary JSON, as far as XGBoost writes it (draft 12, typed arrays, big-endian)."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from bench_trees.importers.imported import ModelError

_NUMBERS = {"i": ">i1", "U": ">u1", "I": ">i2", "l": ">i4", "L": ">i8", "d": ">f4", "D": ">f8"}
_WORDS = {"T": True, "F": False, "Z": None}
_DEEPEST = 50


def looks_like(data: bytes) -> bool:
    """Whether this begins like an object: a brace, then the type of the first key's length."""
    return len(data) > 2 and data[:1] == b"{" and chr(data[1]) in "iUIlL$#"


def parse(data: bytes) -> Any:
    """The value that the bytes hold; typed arrays as numpy arrays. Raises ModelError."""
    try:
        return _Reader(data).value("", 0)
    except (struct.error, IndexError, KeyError, UnicodeDecodeError, ValueError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"it is no UBJ, or cut short ({type(error).__name__}: {error})") from None


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def mark(self) -> str:
        mark = "N"
        while mark == "N":  # no-op
            mark = chr(self.data[self.at])
            self.at += 1
        return mark

    def take(self, length: int) -> bytes:
        if length < 0 or self.at + length > len(self.data):
            raise ModelError("it is no UBJ, or cut short")
        self.at += length
        return self.data[self.at - length : self.at]

    def numbers(self, mark: str, count: int) -> Any:
        dtype = np.dtype(_NUMBERS[mark])
        return np.frombuffer(self.take(count * dtype.itemsize), dtype)

    def length(self) -> int:
        return int(self.numbers(self.mark(), 1)[0])

    def text(self) -> str:
        return self.take(self.length()).decode()

    def value(self, mark: str, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ModelError("its values are nested too deeply")
        mark = mark or self.mark()
        if mark in _WORDS:
            return _WORDS[mark]
        if mark in _NUMBERS:
            return self.numbers(mark, 1)[0].item()
        if mark == "C":
            return self.take(1).decode()
        if mark in "SH":
            return self.text()
        if mark == "[":
            return self.items(depth)
        if mark == "{":
            return self.pairs(depth)
        raise ModelError(f"it is no UBJ: unknown type {mark!r}")

    def container(self) -> tuple[str, int]:
        """The type of all values ("" if each has its own) and their number (-1 if absent)."""
        kind = ""
        if self.data[self.at : self.at + 1] == b"$":
            self.at += 1
            kind = self.mark()
        if self.data[self.at : self.at + 1] != b"#":
            if kind:
                raise ModelError("it is no UBJ: a typed container without a length")
            return "", -1
        self.at += 1
        count = self.length()
        if not 0 <= count <= len(self.data):
            raise ModelError("it is no UBJ, or cut short")
        return kind, count

    def items(self, depth: int) -> Any:
        kind, count = self.container()
        if kind in _NUMBERS:
            return self.numbers(kind, count)
        found: list[Any] = []
        while len(found) != count:
            mark = kind or self.mark()
            if count < 0 and mark == "]":
                break
            found.append(self.value(mark, depth + 1))
        return found

    def pairs(self, depth: int) -> dict[str, Any]:
        kind, count = self.container()
        found: dict[str, Any] = {}
        read = 0
        while read != count:
            if count < 0 and self.data[self.at : self.at + 1] == b"}":
                self.at += 1
                break
            name = self.text()
            found[name] = self.value(kind, depth + 1)
            read += 1
        return found
