"""Where the batches of a grid run: processes of this machine, or the workers of a Dask cluster."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from . import _native, _work
from ._errors import GridError
from ._work import Done, Task


TO_END = 2.0
"""The longest time in which a worker removes what its run has made, seconds."""


class WorkerDied(Exception):
    """The worker of a batch has ended without an answer."""

    def __init__(self, message: str, may_retry: bool) -> None:
        super().__init__(message)
        self.may_retry = may_retry


Answer = Callable[[], list[Done]]
"""Returns the results of a batch, or raises the reason why there are none."""


class Pool(Protocol):
    """Runs batches."""

    def slots(self) -> int:
        """The number of batches that run at once."""

    def submit(self, batch: list[Task], ended: Callable[[Answer], None]) -> None:
        """Starts a batch. `ended` is called on any thread when it has ended."""

    def close(self) -> None:
        """Ends all work."""


class Processes:
    """Processes of this machine. Each runs one batch at a time, so it is clear which batch was
    running where a process died. (A `ProcessPoolExecutor` would lose all running batches.) They are
    not children by fork or multiprocessing, so a script needs no guard for its main module.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._threads = ThreadPoolExecutor(count, "wakeai-grid")
        self._idle: SimpleQueue[subprocess.Popen[str]] = SimpleQueue()
        self._lock = threading.Lock()
        self._all: set[subprocess.Popen[str]] = set()
        self._closed = False

    def slots(self) -> int:
        return self._count

    def pids(self) -> list[int]:
        """The IDs of the processes that were started and that are not known to have ended."""
        with self._lock:
            return [process.pid for process in self._all]

    def submit(self, batch: list[Task], ended: Callable[[Answer], None]) -> None:
        future = self._threads.submit(self._run, batch)
        future.add_done_callback(lambda done: ended(done.result))

    def _start(self) -> subprocess.Popen[str]:
        # A worker finds the package where this process has found it.
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        with self._lock:
            if self._closed:
                raise WorkerDied("the grid was ended", may_retry=False)
            process = subprocess.Popen(
                [sys.executable, "-m", "wakeai._worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": path},
                encoding="utf-8",
            )
            self._all.add(process)
        return process

    def _run(self, batch: list[Task]) -> list[Done]:
        try:
            process = self._idle.get_nowait()
        except Empty:
            process = self._start()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(batch) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = ""
        if not line.endswith("\n"):
            self._end(process)
            raise WorkerDied(f"its process has ended ({_how(process.returncode)})", may_retry=True)
        self._idle.put(process)
        done: list[Done] = json.loads(line)
        return done

    def _end(self, process: subprocess.Popen[str]) -> None:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            try:
                if pipe is not None:
                    pipe.close()
            except OSError:
                pass  # the process has ended, so data in the pipe is lost in any case
        with self._lock:
            self._all.discard(process)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            processes = list(self._all)
        for process in processes:
            process.terminate()  # a thread that waits for its answer goes on
        until = time.monotonic() + TO_END
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, until - time.monotonic()))
            process.kill()
        self._threads.shutdown(cancel_futures=True)
        for process in processes:
            self._end(process)


def _how(status: int | None) -> str:
    if status is not None and status < 0:
        return f"signal {-status}"
    return f"exit status {status}"


class Dask:
    """The workers of a Dask cluster, through a `distributed.Client`. Dask itself runs a batch again
    whose worker died, as often as `distributed.scheduler.allowed-failures` says (3)."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._futures: set[Any] = set()
        self._slots = (0, float("-inf"))
        versions = set(client.run(_work.version).values())
        if versions - {_native.__version__}:
            found = ", ".join(sorted(versions))
            raise GridError(
                f"the workers of the cluster have wakeai {found}, this process has "
                f"{_native.__version__}; install the same version everywhere"
            )

    def slots(self) -> int:
        count, asked = self._slots
        if time.monotonic() - asked > 5.0:  # workers may come and go
            count = max(1, sum(self._client.nthreads().values()))
            self._slots = (count, time.monotonic())
        return count

    def submit(self, batch: list[Task], ended: Callable[[Answer], None]) -> None:
        future = self._client.submit(_work.work, batch, pure=False)
        self._futures.add(future)

        def answer() -> list[Done]:
            from distributed import KilledWorker

            self._futures.discard(future)
            try:
                done: list[Done] = future.result()
            except KilledWorker as error:
                raise WorkerDied(f"its workers have ended: {error}", may_retry=False) from error
            return done

        future.add_done_callback(lambda _: ended(answer))

    def close(self) -> None:
        self._client.cancel(list(self._futures))
        self._futures.clear()
