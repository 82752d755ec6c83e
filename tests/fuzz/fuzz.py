"""Coverage-guided fuzzing of every reader, by atheris (pip install atheris).

    python tests/fuzz/fuzz.py svm --inputs 100000 [--seconds 600] [--corpus DIR] [--findings DIR]

Half of the inputs are changed byte by byte, half token by token (numbers, names and marks are
repeated, exchanged, left out, or replaced by unkind ones). What fails is kept once for each place
of the fault, and fuzzing goes on; DIR/TARGET.json has the counts.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import resource
import sys
import time
import traceback
from hashlib import sha256
from pathlib import Path

import atheris

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
TOKEN = re.compile(rb"[A-Za-z_]+|[0-9.]+|\s+|.", re.DOTALL)
UNKIND = rb"""-1 0 1e999 nan -inf 9223372036854775808 1e-46 3.4028236e38 0x10 "" null true [] {}
-9223372036854775808 99999999999999999999 1_0 1,5 \0 \r \x1b[2J =1+1 2020-01-01 '' " # : qid: , ;"""
WORDS = [*UNKIND.split(), b"\r", b"\r\n", b"\0", b"\x1b", b"\xff", b"[" * 3000, b"9" * 5000, b"\t"]
READERS = [
    "bench_core._io.text",
    "bench_core.costs.cost_file",
    "bench_core.costs.model",
    "bench_core.datasets.readers.svmlight",
    "bench_core.datasets.readers.svmlight_grammar",
    "bench_core.datasets.readers.tables",
    "bench_core.datasets.user_datasets",
    "bench_core.parameters",
    "bench_core.planning.request",
    "bench_core.planning.suites",
    "bench_trees.importers",
    "tomllib",
]


MOST = 2000
ACCEPTED: list[bytes] = []


def mutated(data: bytes, size: int, seed: int) -> bytes:
    """Half of the time of an input that was accepted: what has been refused is refused again."""
    rng = random.Random(seed)
    if ACCEPTED and rng.random() < 0.5:
        data = rng.choice(ACCEPTED)
    if rng.random() < 0.5:
        return bytes(atheris.Mutate(data, size))
    tokens = TOKEN.findall(data) or [b""]
    for _ in range(rng.choice((1, 1, 2, 4))):
        at, other = rng.randrange(len(tokens)), rng.randrange(len(tokens))
        change = rng.randrange(5)
        if change == 0:
            tokens[at] = rng.choice(WORDS)
        elif change == 1:
            tokens[at], tokens[other] = tokens[other], tokens[at]
        elif change == 2:
            tokens.insert(at, tokens[other])
        elif change == 3:
            tokens[at : at + rng.randrange(1, 6)] = [b""]
        else:
            tokens[at:at] = tokens[other : other + rng.randrange(1, 40)]
    return b"".join(tokens)[:size]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("target")
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--corpus", type=Path, default=Path("fuzz-corpus"))
    parser.add_argument("--findings", type=Path, default=Path("fuzz-findings"))
    options = parser.parse_args()
    with atheris.instrument_imports(include=READERS, enable_loader_override=False):
        from targets import TARGETS
    from seeds import seeds

    target, name = TARGETS[options.target], options.target
    corpus = options.corpus / name
    for folder in (corpus, options.findings):
        folder.mkdir(parents=True, exist_ok=True)
    for data in seeds(name):
        (corpus / sha256(data).hexdigest()[:16]).write_bytes(data)
    counts = {"inputs": 0, "accepted": 0, "failed": 0, "seconds": 0.0, "peak_mb": 0.0}
    known: set[str] = set()
    for data in seeds(name):  # what compiles does so now
        if target(data):
            ACCEPTED.append(data)
    start = time.monotonic()

    def tried(data: bytes) -> None:
        counts["inputs"] += 1
        try:
            if target(data):
                counts["accepted"] += 1
                if len(ACCEPTED) < MOST:
                    ACCEPTED.append(data)
        except Exception as error:
            counts["failed"] += 1
            frames = traceback.extract_tb(error.__traceback__)
            place = f"{type(error).__name__} {[(f.name, f.lineno) for f in frames[-2:]]}"
            if place not in known:
                known.add(place)
                kept = options.findings / f"{name}-{sha256(place.encode()).hexdigest()[:8]}"
                kept.write_bytes(data)
                kept.with_suffix(".txt").write_text("".join(traceback.format_exception(error)))
        if counts["inputs"] % 500 == 0:
            counts["seconds"] = round(time.monotonic() - start)
            counts["processor"] = round(time.process_time())
            counts["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            (options.findings / f"{name}.json").write_text(json.dumps(counts))

    more = [f"-runs={options.inputs}", f"-max_total_time={options.seconds}", "-max_len=16384"]
    more += ["-mutate_depth=2", "-timeout=300"]
    more += ["-rss_limit_mb=3000", "-verbosity=0", f"-artifact_prefix={options.findings}/"]
    atheris.Setup([sys.argv[0], *more, str(corpus)], tried, custom_mutator=mutated)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
