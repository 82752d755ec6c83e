"""What a plan must know of a learner, worked out once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bench_core._io.digests import code_key, code_modules, digest
from bench_core._io.machine import versions
from bench_core.class_names import encode
from bench_core.contracts import learner_of
from bench_core.parameters import is_learner, parameters


@dataclass(frozen=True, slots=True)
class Facts:
    """One learner with its parameters.

    ``version`` is the class's own, ``encoded`` as by ``class_names.encode``, ``code`` a digest of
    its source and ``modules`` those that the source begins with. ``inner`` are the learners among
    its parameters, ``needs`` those that it stands on.
    """

    name: str
    tasks: tuple[str, ...]
    version: str
    encoded: Mapping[str, Any]
    code: str
    modules: tuple[str, ...]
    stamp: str
    numerics: tuple[str, ...]
    inner: Mapping[str, Facts]
    needs: tuple[Facts, ...]

    @classmethod
    def of(cls, learner: Any) -> Facts:
        """Those of an instance."""
        kind: Any = type(learner)
        own = learner_of(learner)
        held = {p.name: getattr(learner, p.name) for p in parameters(kind)}
        return cls(
            name=kind.name,
            tasks=tuple(sorted(map(str, own.tasks))),
            version=str(own.version),
            encoded=encode(learner),
            code=code_key(kind),
            modules=tuple(code_modules(kind)),
            stamp=own.stamp(),
            numerics=tuple(own.numerics),
            inner={name: cls.of(value) for name, value in held.items() if is_learner(value)},
            needs=tuple(map(cls.of, own.needs())),
        )

    @property
    def spelling(self) -> str:
        """Module and name of its class."""
        return str(self.encoded["class"])

    @property
    def params(self) -> dict[str, Any]:
        """Its parameters, as ``parameters.as_json``."""
        return {
            name: {"learner": inner.name, **inner.params}
            if (inner := self.inner.get(name))
            else value
            for name, value in self.encoded["fields"].items()
        }

    def with_inner(self) -> Iterator[Facts]:
        """It and the learners that it holds."""
        yield self
        for inner in self.inner.values():
            yield from inner.with_inner()

    def key(self, version: str = "") -> dict[str, Any]:
        """Everything that decides what it computes, as JSON."""
        decides = versions(*self.numerics)
        return {
            "name": self.name,
            "version": version,
            "code": self.code,
            "params": self.params,
            "inner": [inner.key() for inner in self.inner.values()],
            **({"stamp": self.stamp} if self.stamp else {}),
            **({"numerics": decides} if decides else {}),
        }

    @property
    def row_code(self) -> str:
        """A digest of its code and of that of the learners that it holds, for rows: 16 digits."""
        return digest([each.code for each in self.with_inner()])[:16]

    @property
    def libraries(self) -> str:
        """What decides beside code, of it and those that it holds: their stamps and numerics."""
        texts = [t for one in self.with_inner() for t in (one.stamp, versions(*one.numerics)) if t]
        return ", ".join(dict.fromkeys(texts))

    def unsuited(self, task: str, data: str) -> str:
        """Why it cannot work on data of a task, or nothing."""
        if task not in self.tasks:
            return f"{self.name} does {', '.join(self.tasks)}, {data} is {task}"
        for need in self.needs:
            if reason := need.unsuited(task, data):
                return f"{self.name} stands on {reason.replace(' does ', ', which does ', 1)}"
        return ""
