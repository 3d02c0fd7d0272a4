"""Grids on processes of this machine."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import polars
import pytest
import wakeai
from wakeai import _grid, _pools, _work
from wakeai._work import Done, Task

from .conftest import files

KEYS: dict[str, list[int] | list[str]] = {"stations.phone.count": [1, 2, 3], "duration": ["3s", "4s"]}


def plan(scenario: wakeai.Scenario, repeat: int = 2) -> _grid.Plan:
    """The grid of `KEYS`."""
    axes = [
        _grid.Axis("stations.phone.count", ["1", "2", "3"], [1, 2, 3]),
        _grid.Axis("duration", ['"3s"', '"4s"'], ["3s", "4s"]),
    ]
    return _grid.Plan(scenario, axes, 1, repeat, [])


class Here:
    """A pool that makes its runs at once in this process, and counts them."""

    def __init__(self, dies: Callable[[list[Task]], bool] = lambda batch: False) -> None:
        self.dies = dies
        self.made: list[Task] = []
        self.deaths = 0

    def slots(self) -> int:
        return 1

    def submit(self, batch: list[Task], ended: Callable[[_pools.Answer], None]) -> None:
        def answer() -> list[Done]:
            if self.dies(batch):
                self.deaths += 1
                raise _pools.WorkerDied("killed by the test", may_retry=True)
            self.made += batch
            return _work.work(batch)

        ended(answer)

    def close(self) -> None:
        pass


class Cut(Exception):
    """Raised by a test to interrupt a grid."""


def test_one_process_and_several_write_the_same_bytes(
    scenario: wakeai.Scenario, tmp_path: Path
) -> None:
    for count in (1, 3):
        out = tmp_path / str(count)
        grid = wakeai.grid(scenario, KEYS, repeat=2, processes=count, out=out, progress=False)
        assert not grid.failed
    one, other = files(tmp_path / "1"), files(tmp_path / "3")
    assert len(one) == 1 + 6 * 4
    assert one == other


def test_values_that_mean_the_same_runs_are_refused(scenario: wakeai.Scenario) -> None:
    for keys in (
        {"stations.phone.count": [2, 2]},
        {"duration": ["3s", "4s", "3000ms"]},
        {"stations.phone.count": [1, 2], "stations.1.count": [1, 2]},
    ):
        with pytest.raises(wakeai.GridError, match="are the same runs; give each value once"):
            wakeai.grid(scenario, keys, processes=1, progress=False)


def test_the_rows_are_sorted_by_cell_and_seed_and_equal_those_of_single_runs(
    scenario: wakeai.Scenario, tmp_path: Path
) -> None:
    grid = wakeai.grid(scenario, KEYS, repeat=2, seed=7, processes=2, progress=False)
    runs = grid.to_polars("runs")
    assert runs.columns[:5] == ["duration", "stations.phone.count", "condition", "repeat", "seed"]
    assert runs["stations.phone.count"].to_list() == [1] * 8 + [2] * 8 + [3] * 8
    assert runs["duration"].to_list() == (["3s"] * 4 + ["4s"] * 4) * 3
    assert runs["seed"].to_list() == [7, 7, 8, 8] * 6
    assert "wall_s" not in runs.columns
    assert len(grid["wall_times"]) == len(runs)
    alone = wakeai.run(scenario, {"stations.phone.count": 3}, seed=7, repeat=2, duration="4s")
    order = ["seed", "condition"]
    expected = alone.to_polars("runs").sort(order)
    found = runs[-4:].sort(order)
    shared = [name for name in expected.columns if name in found.columns]
    assert found.select(shared).equals(expected.select(shared))


def test_a_solo_run_is_made_once_for_all_cells(scenario: wakeai.Scenario, tmp_path: Path) -> None:
    pool = Here()
    _grid.make(plan(scenario), pool, tmp_path / "out", False)
    solos = [task for task in pool.made if task["cell"] == _grid.SOLO]
    # One for each duration and seed: the number of stations does not matter to a station alone.
    assert len(solos) == 2 * 2
    runs = [task for task in pool.made if task["cell"] != _grid.SOLO]
    assert len(runs) == 6 * 2
    assert all(len(task["solos"]) == 1 for task in runs)


def test_a_grid_that_was_cut_goes_on_where_it_was(
    scenario: wakeai.Scenario, tmp_path: Path
) -> None:
    whole = Here()
    _grid.make(plan(scenario), whole, tmp_path / "whole", False)
    made = 0
    for limit in (2, 5, 9, 100):
        pool = Here()

        def cut(batch: list[Task], limit: int = limit, pool: Here = pool) -> bool:
            if len(pool.made) >= limit:
                raise Cut
            return False

        pool.dies = cut
        try:
            _grid.make(plan(scenario), pool, tmp_path / "cut", False)
        except Cut:
            assert (tmp_path / "cut/parts").is_dir()
        made += len(pool.made)
    assert made == len(whole.made)
    assert files(tmp_path / "cut") == files(tmp_path / "whole")
    nothing_left = Here()
    _grid.make(plan(scenario), nothing_left, tmp_path / "cut", False)
    assert not nothing_left.made
    opened = wakeai.open(tmp_path / "cut")
    assert len(opened["runs"]) == 6 * 2 * 2


def test_another_grid_or_other_files_in_the_directory_are_refused(
    scenario: wakeai.Scenario, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    wakeai.grid(scenario, {"duration": ["3s"]}, processes=1, out=out, progress=False)
    before = files(out)
    with pytest.raises(wakeai.GridError, match="differs in keys and seed"):
        wakeai.grid(scenario, {"duration": ["4s"]}, seed=2, processes=1, out=out)
    with pytest.raises(wakeai.GridError, match="differs in scenario"):
        wakeai.grid(scenario.replace(warmup="2s"), {"duration": ["3s"]}, processes=1, out=out)
    assert files(out) == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("keep")
    with pytest.raises(wakeai.GridError, match="not of a grid"):
        wakeai.grid(scenario, {"duration": ["3s"]}, processes=1, out=tmp_path / "mine")
    assert list((tmp_path / "mine").iterdir()) == [tmp_path / "mine/notes.txt"]


def test_a_refused_value_stops_the_grid_before_its_first_run(
    scenario: wakeai.Scenario, tmp_path: Path
) -> None:
    with pytest.raises(wakeai.ScenarioError) as caught:
        wakeai.grid(scenario, {"stations.phone.count": [1, 0]}, out=tmp_path / "out")
    assert caught.value.key == "stations.phone.count"
    assert not (tmp_path / "out").exists()
    with pytest.raises(wakeai.GridError, match="no values"):
        wakeai.grid(scenario, {"duration": []})
    with pytest.raises(TypeError, match="list of values"):
        wakeai.grid(scenario, {"duration": "3s"})


def test_a_batch_that_kills_its_worker_three_times_fails_and_the_others_go_on(
    scenario: wakeai.Scenario, tmp_path: Path
) -> None:
    pool = Here(dies=lambda batch: any((one["cell"], one["repeat"]) == (0, 1) for one in batch))
    grid = _grid.make(plan(scenario), pool, tmp_path / "out", False)
    assert pool.deaths == 3
    assert grid.failed
    assert {"stations.phone.count": 1, "duration": "3s"} in [one.keys for one in grid.failed]
    assert len(grid["runs"]) == (12 - 2 * len({str(one.keys) for one in grid.failed})) * 2
    # The same command makes what is missing.
    again = _grid.make(plan(scenario), Here(), tmp_path / "out", False)
    assert not again.failed
    _grid.make(plan(scenario), Here(), tmp_path / "whole", False)
    assert files(tmp_path / "out") == files(tmp_path / "whole")


def test_a_worker_that_is_killed_costs_its_batch_only(
    scenario: wakeai.Scenario, tmp_path: Path
) -> None:
    pool = _pools.Processes(2)
    killed: list[int] = []
    done = threading.Event()

    def kill_one() -> None:
        while not killed and not done.wait(0.005):
            for pid in pool.pids():
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
                break

    killer = threading.Thread(target=kill_one)
    killer.start()
    try:
        grid = _grid.make(plan(scenario, repeat=10), pool, tmp_path / "out", False)
    finally:
        done.set()
        killer.join()
        pool.close()
    assert killed
    assert not grid.failed
    _grid.make(plan(scenario, repeat=10), Here(), tmp_path / "whole", False)
    assert files(tmp_path / "out") == files(tmp_path / "whole")


def test_only_one_process_makes_a_grid(scenario: wakeai.Scenario, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def second(batch: list[Task]) -> bool:
        with pytest.raises(wakeai.GridError, match="another process"):
            _grid.make(plan(scenario), Here(), out, False)
        return False

    _grid.make(plan(scenario), Here(second), out, False)


def test_the_cells_are_parquet_for_other_tools(scenario: wakeai.Scenario, tmp_path: Path) -> None:
    keys = {"stations.phone.count": [1, 2]}
    wakeai.grid(scenario, keys, processes=1, out=tmp_path / "out", progress=False)
    runs = polars.read_parquet(tmp_path / "out/cells/*/runs.parquet")
    assert runs["stations.phone.count"].to_list() == [1, 1, 2, 2]
    assert not (tmp_path / "out/parts").exists()
