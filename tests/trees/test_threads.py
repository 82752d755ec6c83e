from __future__ import annotations

import threading

import pytest
from bench_trees.threads import workers


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("items", [0, 1, 7, 100])
def test_every_item_is_done_once(threads: int, items: int) -> None:
    done = [0] * items

    def piece(start: int, stop: int) -> None:
        for i in range(start, stop):
            done[i] += 1

    with workers(threads) as crew:
        crew.run(piece, items, 4)
    assert done == [1] * items


def test_pieces_run_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=100)

    def piece(start: int, stop: int) -> None:
        both.wait()

    with workers(2) as crew:
        crew.run(piece, 2, 1)


def test_an_error_in_a_piece_reaches_the_caller() -> None:
    def piece(start: int, stop: int) -> None:
        raise KeyError(start)

    with workers(2) as crew, pytest.raises(KeyError):
        crew.run(piece, 8, 1)


def test_no_thread_is_left_behind() -> None:
    before = threading.active_count()
    with workers(3) as crew:
        crew.run(lambda start, stop: None, 9, 1)
    assert threading.active_count() == before


def test_no_threads_at_all_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"), workers(0):
        pass
