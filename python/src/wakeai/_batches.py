"""Sends tasks to workers in batches that take about `TARGET_S`, and runs a batch again whose worker
died."""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Iterator
from queue import SimpleQueue
from types import TracebackType
from typing import Any

from . import _pools
from ._work import Done, Task

TARGET_S = 2.0
"""The time that a batch should take, seconds. A task of Dask costs up to a millisecond."""
MOST = 10_000
"""The largest number of runs in a batch."""
KILLS = 3
"""A batch has failed when its workers have died this many times."""


class Batches:
    """Runs tasks in a pool, with a progress bar."""

    def __init__(
        self, pool: _pools.Pool, total: int, done: int, progress: bool | None
    ) -> None:
        from tqdm import tqdm

        self._pool = pool
        self._run_s: float | None = None
        """The time that a run takes, seconds: a moving average over the batches."""
        disable = None if progress is None else not progress
        if sys.stderr is None:  # closed, and tqdm would write to it
            disable = True
        self._bar: Any = tqdm(total=total, initial=done, unit="run", disable=disable)

    def __enter__(self) -> Batches:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.close()

    def _size(self, left: int) -> int:
        """The number of runs in the next batch. The first batches have one run each, which shows
        how long a run takes. Towards the end batches become smaller, so that all workers end at
        about the same time."""
        if self._run_s is None:
            return 1
        fits = int(TARGET_S / max(self._run_s, 1e-6))
        return max(1, min(fits, math.ceil(left / (2 * self._pool.slots())), MOST))

    def _learn(self, done: list[Done]) -> None:
        mean = sum(one["took_s"] for one in done) / len(done)
        self._run_s = mean if self._run_s is None else (self._run_s + mean) / 2

    def results(
        self, tasks: Iterator[Task], count: int, counts: bool = False
    ) -> Iterator[tuple[list[Task], list[Done]]]:
        """Gives each batch and its results when it ends. `counts` tells whether the bar counts its
        runs."""
        self._run_s = None
        ended: SimpleQueue[tuple[list[Task], int, _pools.Answer]] = SimpleQueue()
        again: deque[tuple[list[Task], int]] = deque()
        left, running = count, 0

        def submit(batch: list[Task], kills: int) -> None:
            self._pool.submit(batch, lambda answer: ended.put((batch, kills, answer)))

        while left or again or running:
            # Each worker has a second batch in its queue, so that it need not wait for one.
            while (again or left) and running < 2 * self._pool.slots():
                if again:
                    submit(*again.popleft())
                else:
                    size = self._size(left)
                    submit([next(tasks) for _ in range(size)], 0)
                    left -= size
                running += 1
            batch, kills, answer = ended.get()
            running -= 1
            try:
                done = answer()
            except _pools.WorkerDied as error:
                if error.may_retry and kills + 1 < KILLS:
                    again.append((batch, kills + 1))
                    continue
                done = [_failed(task, str(error)) for task in batch]
            else:
                self._learn(done)
            if counts:
                self._bar.update(len(done))
            yield batch, done


def _failed(task: Task, reason: str) -> Done:
    return Done(
        cell=task["cell"],
        repeat=task["repeat"],
        report=None,
        mbps=None,
        error=f"the batch of this run failed: {reason}",
        took_s=0.0,
    )
