"""Pieces of tasks that threads take from a board."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from bench_trees.kernels.sharing import (
    BOARD,
    ENDED,
    NO_MORE,
    NONE,
    NUMBERS,
    PIECES,
    TASK,
    _all_done,
    _finished,
    _kind,
    _post,
    _rest,
    _take,
)
from numba import njit


@njit(nogil=True)
def wait(board: Any, pieces: int) -> None:
    waited = 0
    while not _all_done(board, pieces):
        _rest(waited)
        waited += 1


@njit(nogil=True)
def tasks(board: Any, done: Any, kinds: Any) -> None:
    """A task for every row of ``done``, of so many pieces; each piece adds 1 to its place."""
    for i in range(len(done)):
        pieces = i % done.shape[1] + 1
        _post(board, i, pieces)
        piece = _take(board)
        while piece >= 0:
            done[i, piece] += 1
            kinds[i, piece] = _kind(board)
            _finished(board)
            piece = _take(board)
        wait(board, pieces)
        for k in range(pieces):
            if done[i, k] != 1:  # seen by now, whoever did it
                done[i, k] = -1


@njit(nogil=True)
def helps(board: Any, done: Any, kinds: Any, helped: Any, who: int) -> None:
    while True:
        piece = _take(board)
        if piece >= 0:
            kind = _kind(board)
            done[kind, piece] += 1
            kinds[kind, piece] = kind
            helped[who] += 1
            _finished(board)
        elif piece == ENDED:
            return


@pytest.mark.parametrize("helpers", [0, 1, 3])
def test_every_piece_is_done_once_and_before_the_task_is(helpers: int) -> None:
    board, done = np.zeros(BOARD, np.int64), np.zeros((20_000, 7), np.int64)
    kinds, helped = np.full(done.shape, -1), np.zeros(helpers + 1, np.int64)
    helps(np.full(BOARD, NO_MORE), done, kinds, helped, 0)  # compiled before the work begins
    tasks(np.zeros(BOARD, np.int64), done[:0], kinds[:0])
    with ThreadPoolExecutor(helpers + 1) as pool:
        others = [pool.submit(helps, board, done, kinds, helped, i) for i in range(helpers)]
        tasks(board, done, kinds)
        board[TASK] = NO_MORE
        for other in others:
            other.result(timeout=10)
    there = np.arange(7) <= (np.arange(len(done)) % 7)[:, None]
    assert (done == there).all()
    assert (kinds == np.where(there, np.arange(len(done))[:, None], -1)).all()


def test_a_helper_alone_does_a_whole_task() -> None:
    board, done, helped = (
        np.zeros(BOARD, np.int64),
        np.zeros((1, 5), np.int64),
        np.zeros(1, np.int64),
    )
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(helps, board, done, done.copy(), helped, 0)
        post_and_wait(board, 5)
        board[TASK] = NO_MORE
        other.result(timeout=100)
    assert (done == 1).all()
    assert helped.tolist() == [5]


@njit(nogil=True)
def post_and_wait(board: Any, pieces: int) -> None:
    _post(board, 0, pieces)
    wait(board, pieces)


def test_a_board_with_nothing_posted_or_ended_has_no_piece() -> None:
    assert take(np.zeros(BOARD, np.int64)) == NONE
    assert take(np.full(BOARD, NO_MORE)) == ENDED


def test_numbers_of_tasks_begin_again_after_the_last() -> None:
    board = np.zeros(BOARD, np.int64)
    board[TASK] = NUMBERS << 2 * PIECES
    post(board, 1)
    assert (take(board), take(board)) == (0, NONE)


@njit
def post(board: Any, pieces: int) -> None:
    _post(board, 0, pieces)


@njit
def take(board: Any) -> int:
    return _take(board)
