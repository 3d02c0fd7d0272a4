"""Grids on a real Dask cluster: a scheduler and two workers, each a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import wakeai
from wakeai import _grid, _pools

from .conftest import PATIENCE, ROOT, files, python

distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.release

KEYS = {"stations.phone.count": [1, 2, 3, 4]}


class Cluster:
    """A scheduler and its workers on the loopback interface, at ports that the system chooses."""

    def __init__(self, directory: Path, workers: int = 2) -> None:
        self._file = directory / "scheduler.json"
        self._directory = directory
        self._processes: list[subprocess.Popen[bytes]] = []
        self._start("scheduler", "--port", "0", "--no-dashboard")
        self.workers = [self.start_worker() for _ in range(workers)]

    def _start(self, kind: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "distributed.cli.dask_" + kind]
        common = ["--scheduler-file", str(self._file), "--host", "127.0.0.1"]
        # There is an HTTP server even without a dashboard. Without this option it listens on all
        # addresses.
        common += ["--dashboard-address", "127.0.0.1:0"]
        log = (self._directory / "log").open("ab")
        process = subprocess.Popen(
            [*command, *common, *arguments], stdout=log, stderr=log, cwd=self._directory
        )
        self._processes.append(process)
        return process

    def start_worker(self) -> subprocess.Popen[bytes]:
        """A worker with one thread. No nanny process starts it again after it was killed."""
        local = ["--local-directory", str(self._directory)]
        return self._start("worker", "--nthreads", "1", "--no-nanny", "--no-dashboard", *local)

    def client(self, workers: int = 2) -> object:
        """A client, after this number of workers has connected to the scheduler."""
        client = distributed.Client(scheduler_file=str(self._file), timeout=PATIENCE)
        client.wait_for_workers(workers, timeout=PATIENCE)
        return client

    def close(self) -> None:
        for process in reversed(self._processes):
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster of two workers."""
    directory = tmp_path / "dask"
    directory.mkdir()
    made = Cluster(directory)
    try:
        yield made
    finally:
        made.close()


def reference(scenario: wakeai.Scenario, directory: Path, repeat: int) -> dict[str, bytes]:
    """Makes the grid with one process. Returns the files that it writes."""
    grid = wakeai.grid(scenario, KEYS, repeat=repeat, processes=1, out=directory, progress=False)
    assert not grid.failed
    return files(directory)


def test_two_workers_write_what_one_process_writes(
    scenario: wakeai.Scenario, tmp_path: Path, cluster: Cluster
) -> None:
    with cluster.client() as client:  # type: ignore[attr-defined]
        grid = wakeai.grid(
            scenario, KEYS, repeat=3, client=client, out=tmp_path / "dask-grid", progress=False
        )
    assert not grid.failed
    assert files(tmp_path / "dask-grid") == reference(scenario, tmp_path / "one", 3)


def test_a_worker_that_is_killed_costs_its_batch_only(
    scenario: wakeai.Scenario, tmp_path: Path, cluster: Cluster
) -> None:
    slow = scenario.replace(duration="60s")
    out = tmp_path / "dask-grid"
    done = threading.Event()
    killed = threading.Event()

    def kill() -> None:
        while not done.wait(0.01):
            if any((out / "cells").glob("[0-9]*")):  # the grid has begun, and most runs are missing
                cluster.workers[0].kill()
                killed.set()
                return

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with cluster.client() as client:  # type: ignore[attr-defined]
            grid = wakeai.grid(slow, KEYS, repeat=10, client=client, out=out, progress=False)
            assert killed.is_set()
            assert len(client.scheduler_info()["workers"]) == 1
    finally:
        done.set()
        killer.join()
    assert not grid.failed
    assert files(out) == reference(slow, tmp_path / "one", 10)


def test_a_coordinator_that_is_killed_goes_on_with_the_same_command(
    scenario_file: Path, tmp_path: Path, cluster: Cluster
) -> None:
    client = cluster.client()
    address = client.scheduler.address  # type: ignore[attr-defined]
    out = tmp_path / "grid"
    values = ["--set", "stations.phone.count=1,2,3,4", "--set", "duration=60s", "--repeat", "10"]
    command = ["-m", "wakeai", "grid", str(scenario_file), *values, "--dask", address]
    process = subprocess.Popen([sys.executable, *command, "--out", str(out)], cwd=ROOT)
    try:
        while not any((out / "parts").glob("[0-9]*.json")):
            assert process.poll() is None
            os.sched_yield()
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not (out / "cells/0003").exists()
        finished = python(*command, "--out", str(out))
        assert finished.returncode == 0, finished.stderr
    finally:
        process.kill()
        process.wait()
        client.close()  # type: ignore[attr-defined]
    whole = tmp_path / "whole"
    once = ["-m", "wakeai", "grid", str(scenario_file), *values, "--out", str(whole)]
    assert python(*once).returncode == 0
    assert files(out) == files(whole)


def test_a_batch_that_kills_every_worker_fails_and_the_others_go_on(
    scenario: wakeai.Scenario, tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Dask runs a batch again after `allowed-failures` (3) deaths, so this takes four workers.
    for _ in range(4):
        cluster.start_worker()
    axes = [_grid.Axis("stations.phone.count", ["1", "2", "3", "4"], [1, 2, 3, 4])]
    plan = _grid.Plan(scenario, axes, 1, 1, [])
    monkeypatch.setattr("wakeai._batches.TARGET_S", 0.0)  # one run in each batch
    text = plan.cells[1][0]
    with cluster.client(6) as client:  # type: ignore[attr-defined]
        pool = _pools.Dask(client)
        submit = client.submit

        def poisoned(function: object, batch: list[dict[str, str]], **more: object) -> object:
            dies = batch[0]["scenario"] == text
            return submit(os._exit, 1, **more) if dies else submit(function, batch, **more)

        monkeypatch.setattr(client, "submit", poisoned)
        grid = _grid.make(plan, pool, tmp_path / "out", False)
    assert [one.keys for one in grid.failed] == [{"stations.phone.count": 2}]
    counts = grid.to_polars("runs")["stations.phone.count"].unique().sort().to_list()
    assert counts == [1, 3, 4]


def test_the_example_draws_jain_s_index_over_stations(cluster: Cluster, tmp_path: Path) -> None:
    client = cluster.client()
    address = client.scheduler.address  # type: ignore[attr-defined]
    client.close()  # type: ignore[attr-defined]
    picture = tmp_path / "index.svg"
    done = python("python/examples/index_over_stations.py", address, str(picture), "3", "2")
    assert done.returncode == 0, done.stderr
    text = picture.read_text(encoding="utf-8")
    # Matplotlib draws letters as paths, and names each of its texts in a comment.
    for word in ("stations", "Jain's index", "default", "shimada-after", "airtime"):
        assert f"<!-- {word} -->" in text, word
