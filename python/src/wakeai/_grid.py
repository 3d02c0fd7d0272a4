"""Grids: a scenario with every combination of values of some keys, and several seeds."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _grid_files, _native, _pools, _scenario, _toml
from ._batches import Batches
from ._errors import GridError
from ._grid_files import Store
from ._lab import Lab
from ._result import Tables, processors
from ._scenario import Scenario
from ._work import Done, Task

SOLO = -1
"""The value of `cell` in a solo run, which belongs to no cell."""


@dataclasses.dataclass(frozen=True)
class Failure:
    """A run that could not be made."""

    keys: dict[str, Any]
    """The values of the cell's keys; empty for a solo run."""
    seed: int
    reason: str


class Grid(Tables):
    """The tables of a grid, as those of `wakeai.run`, sorted by cell and seed.

    Each row begins with the values of the grid's keys. `wall_times` has the real time that each
    run took (`wall_s`, seconds), which is the only figure that differs between two grids of the
    same runs.
    """

    def __init__(self, tables: Mapping[str, Any], failed: Sequence[Failure]) -> None:
        super().__init__(tables)
        self.failed = list(failed)
        """The runs that could not be made. Their cells have no rows."""


@dataclasses.dataclass(frozen=True)
class Axis:
    """A key and its values, each as the text that overrides take."""

    key: str
    texts: list[str]
    values: list[Any]

    @property
    def kind(self) -> str:
        """The type of the key's column."""
        kinds = {type(value) for value in self.values}
        if kinds == {bool}:
            return "boolean"
        if kinds == {int}:
            return "integer"
        return "float" if kinds <= {int, float} else "text"


def grid(
    scenario: Scenario | Mapping[str, Any] | str | os.PathLike[str],
    keys: Mapping[str, Sequence[Any]],
    *,
    repeat: int = 1,
    seed: int = 1,
    conditions: Sequence[str] = (),
    client: Any = None,
    processes: int | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    world: str = "sim",
    kernel: str | None = None,
    modules: str | os.PathLike[str] | None = None,
    memory: int | None = None,
) -> Grid:
    """Runs each combination of the keys' values with `repeat` seeds.

    `keys` has for each key of the scenario, named as for `--set`, its values. Repeat number r (from
    0) has the seed `seed + r` in every cell, so cells can be compared seed by seed. `conditions`
    names those to run; without names all are run.

    The runs are made by `processes` of this machine (by default one for each processor), or with a
    `distributed.Client` as `client` by its Dask cluster, whose workers need this package and no
    shared disk. Runs are sent in batches that take about 2 s. Solo runs, which measure what a
    station reaches alone, are made once for all cells. A batch whose worker dies is run again.
    After three deaths its runs are in `failed`, and the other runs go on. The tables do not depend
    on where or in which order the runs were made.

    With `out`, the results are written into that directory as they end, as Parquet partitioned by
    cell, and an interrupted grid continues where it stopped. Without it they are kept in memory.
    `progress` tells whether a progress bar is shown; None shows it on a terminal.

    With `world="lab"` each run is made on the kernel `kernel`, in a guest of its own, as by `wakeai lab --kernel`; `modules`
    and `memory` are those of that command. The workers need the program `wakeai`, qemu and iperf3. A run that was made
    with another kernel or image than the first one is refused, and its worker named, in `failed`.

    Raises `ScenarioError` for a value that is refused, and `GridError` for values that mean the same
    runs, and if `out` has another grid or other files.
    """
    axes = []
    for key, values in keys.items():
        if isinstance(values, (str, bytes)):
            raise TypeError(f"{key}: found the text {values!r}, expected a list of values")
        plain = [value.item() if hasattr(value, "item") else value for value in values]
        axes.append(Axis(key, [_toml.value(value) for value in plain], plain))
    chosen = _scenario.of(scenario)
    count = processes or processors()
    pool = _pools.Dask(client) if client is not None else _pools.Processes(count)
    try:
        lab = lab_of(world, kernel, modules, memory)
        plan = Plan(chosen, axes, seed, repeat, list(conditions), lab)
        if out is not None:
            return make(plan, pool, Path(out), progress)
        with tempfile.TemporaryDirectory(prefix="wakeai-grid-") as directory:
            return make(plan, pool, Path(directory), progress)
    finally:
        pool.close()


def lab_of(
    world: str,
    kernel: str | None,
    modules: str | os.PathLike[str] | None,
    memory: int | None,
) -> Lab | None:
    """How the runs of a world are made in guests; None for the simulator."""
    if world not in ("sim", "lab"):
        raise GridError(f"world: found {world!r}, expected sim or lab")
    if world == "sim":
        if kernel is not None or modules is not None or memory is not None:
            raise GridError("kernel, modules and memory belong to world=\"lab\" (--world lab)")
        return None
    if kernel is None or kernel == "host":
        raise GridError(
            "a grid of the lab needs a kernel for its guests, such as 6.12: on the machine's own kernel the lab makes one "
            "run at a time"
        )
    return Lab(kernel=kernel, modules=None if modules is None else os.fspath(modules), memory=memory)


class Plan:
    """The runs of a grid. All scenarios are checked when a plan is made."""

    def __init__(
        self,
        scenario: Scenario,
        axes: list[Axis],
        seed: int,
        repeat: int,
        conditions: list[str],
        lab: Lab | None = None,
    ) -> None:
        if repeat < 1:
            raise GridError(f"repeat: found {repeat}, expected 1 or more")
        seen = set()
        for axis in axes:
            if not axis.values:
                raise GridError(f"{axis.key} has no values; the grid would be empty")
            if axis.key in seen:
                raise GridError(
                    f"{axis.key} is given twice; give all of its values together: {axis.key}=A,B"
                )
            seen.add(axis.key)
        self.scenario, self.axes = scenario, axes
        self.seed, self.repeat, self.conditions = seed, repeat, conditions
        self.lab = lab
        self._meant: dict[bytes, dict[str, Any]] = {}
        """The keys of each cell, by a digest of what they mean."""
        places = itertools.product(*(range(len(axis.texts)) for axis in axes))
        self.cells = [self._cell(place) for place in places]
        self._meant.clear()
        # Scenario and conditions are checked here, before any run begins.
        self.solos = [self._solos(text) for text, _ in self.cells]

    def _cell(self, place: tuple[int, ...]) -> tuple[str, dict[str, Any]]:
        chosen = list(zip(self.axes, place, strict=True))
        pairs = [(axis.key, axis.texts[index]) for axis, index in chosen]
        keys = {axis.key: axis.values[index] for axis, index in chosen}
        scenario = self.scenario._replace_texts(pairs)
        self._refuse_the_same(scenario, keys)
        return scenario.to_toml(), keys

    def _refuse_the_same(self, scenario: Scenario, keys: dict[str, Any]) -> None:
        """Refuses a cell whose runs would be those of another cell, and would count as independent."""
        digest = hashlib.blake2b(scenario._native.meaning().encode()).digest()
        other = self._meant.setdefault(digest, keys)
        if other is not keys:
            first, second = (
                ", ".join(f"{key}={value}" for key, value in cell.items()) for cell in (other, keys)
            )
            raise GridError(f"{first} and {second} are the same runs; give each value once")

    def _solos(self, text: str) -> list[str]:
        """The keys of the solo runs that each seed of a cell needs."""
        scenario = _native.Scenario.parse(text)
        solos = _native.solos(scenario, seed=0, repeat=1, conditions=self.conditions)
        return [solo for solo, _ in solos]

    def seed_of(self, repeat: int) -> int:
        """The seed of a repeat, which is the same in each cell."""
        return (self.seed + repeat) % 2**64

    def manifest(self) -> dict[str, Any]:
        """The content of `grid.json`. Two grids are the same if their manifests are equal."""
        # A grid of the simulator has the same manifest as before there were grids of the lab.
        lab = {} if self.lab is None else {"world": "lab", "lab": dict(self.lab)}
        return {
            **lab,
            "format": 1,
            "version": _native.__version__,
            "scenario": self.scenario.to_toml(),
            "keys": {axis.key: [_plain(value) for value in axis.values] for axis in self.axes},
            "seed": self.seed,
            "repeat": self.repeat,
            "conditions": self.conditions,
        }

    def columns(self, cell: int) -> str:
        """The columns that begin the rows of a cell."""
        keys = self.cells[cell][1]
        kinds = {axis.key: axis.kind for axis in self.axes}

        def shown(key: str) -> Any:
            value = _plain(keys[key])
            if kinds[key] == "text" and not isinstance(value, str):
                return _toml.value(value)
            return value

        return json.dumps({key: [kinds[key], shown(key)] for key in keys})


def _plain(value: Any) -> bool | int | float | str:
    """The value, or its TOML where it is a list or a mapping."""
    return value if isinstance(value, (bool, int, float, str)) else _toml.value(value)


def make(plan: Plan, pool: _pools.Pool, directory: Path, progress: bool | None) -> Grid:
    """Makes the runs that `directory` does not have yet, and reads all tables."""
    store = Store(directory, plan.manifest(), len(plan.cells))
    try:
        failed = _Making(plan, pool, store, progress).make()
        if not failed:
            store.finish()
        return Grid(_grid_files.read_tables(directory) if _has_cells(plan, store) else {}, failed)
    finally:
        store.close()


def _has_cells(plan: Plan, store: Store) -> bool:
    return any(store.has_cell(cell) for cell in range(len(plan.cells)))


class _Making:
    """The state of a grid that is being made."""

    def __init__(
        self, plan: Plan, pool: _pools.Pool, store: Store, progress: bool | None
    ) -> None:
        self.plan, self.pool, self.store, self.progress = plan, pool, store, progress
        self.known: dict[tuple[str, int], float] = {}
        """Solo goodputs in Mbit/s by key and seed."""
        self.reports: dict[int, dict[int, str]] = {}
        """The reports by repeat of the cells that have not ended."""
        self.failed: list[Failure] = []
        self.guest: dict[str, Any] | None = None
        """The guest of the first run of the lab, which all others have to have."""
        self.open = [cell for cell in range(len(plan.cells)) if not store.has_cell(cell)]
        is_open = set(self.open)
        for part in store.parts():
            self.guest = self.guest or part.get("guest")
            for key, seed, mbps in part["solos"]:
                self.known[key, seed] = mbps
            for cell, repeat, report in part["runs"]:
                if cell in is_open:
                    self.reports.setdefault(cell, {})[repeat] = report

    def make(self) -> list[Failure]:
        for cell in self.open:
            self._end_cell(cell)  # all of its runs may be in parts of an earlier process
        solos = self._solo_tasks()
        runs = self._missing()
        total = len(self.plan.cells) * self.plan.repeat
        with Batches(self.pool, total, total - len(runs), self.progress) as batches:
            for batch, done in batches.results(iter(solos), len(solos)):
                self._keep_solos(batch, done)
            for _, done in batches.results(self._run_tasks(runs), len(runs), counts=True):
                self._keep_runs(done)
        order = {json.dumps(keys): index for index, (_, keys) in enumerate(self.plan.cells)}
        self.failed.sort(key=lambda one: (order.get(json.dumps(one.keys), -1), one.seed))
        return self.failed

    def _missing(self) -> list[tuple[int, int]]:
        return [
            (cell, repeat)
            for cell in self.open
            if not self.store.has_cell(cell)
            for repeat in range(self.plan.repeat)
            if repeat not in self.reports.get(cell, {})
        ]

    def _solo_tasks(self) -> list[Task]:
        needed: dict[tuple[str, int], str] = {}
        """A scenario that needs the run, by key and seed."""
        for cell, repeat in self._missing():
            for key in self.plan.solos[cell]:
                needed.setdefault((key, self.plan.seed_of(repeat)), self.plan.cells[cell][0])
        return [
            self._task(
                cell=SOLO,
                repeat=0,
                scenario=scenario,
                seed=seed,
                conditions=self.plan.conditions,
                solos=[],
                solo=key,
            )
            for (key, seed), scenario in needed.items()
            if (key, seed) not in self.known
        ]

    def _run_tasks(self, runs: list[tuple[int, int]]) -> Iterator[Task]:
        for cell, repeat in runs:
            seed = self.plan.seed_of(repeat)
            # The result of a failed solo run is missing here. The run makes it again, and reports
            # the error.
            known = [
                (key, seed, self.known[key, seed])
                for key in self.plan.solos[cell]
                if (key, seed) in self.known
            ]
            yield self._task(
                cell=cell,
                repeat=repeat,
                scenario=self.plan.cells[cell][0],
                seed=seed,
                conditions=self.plan.conditions,
                solos=known,
                solo=None,
            )

    def _task(self, **values: Any) -> Task:
        task: Task = {**values}  # type: ignore[typeddict-item]
        if self.plan.lab is not None:
            task["lab"] = self.plan.lab
        return task

    def _refuse_another_guest(self, done: list[Done]) -> None:
        """Takes away the results of runs whose guest is another one than that of the first run."""
        for one in done:
            # The memory follows from the number of stations, which differs between cells.
            guest = {key: value for key, value in one.get("guest", {}).items() if key != "memory_mb"}
            if not guest:
                continue
            self.guest = self.guest or guest
            differs = [key for key in guest if guest[key] != self.guest.get(key)]
            if differs:
                one["report"] = one["mbps"] = None
                one["error"] = (
                    f"the worker {one.get('host')} has another {' and '.join(differs)} than the first run of this grid; "
                    "give it the same kernel and the same wakeai"
                )

    def _keep_solos(self, batch: list[Task], done: list[Done]) -> None:
        self._refuse_another_guest(done)
        found = [
            (task["solo"], task["seed"], one["mbps"])
            for task, one in zip(batch, done, strict=True)
            if task["solo"] is not None and one["mbps"] is not None
        ]
        self.known.update({(key, seed): mbps for key, seed, mbps in found})
        self._add_part(found, [])

    def _add_part(self, solos: list[Any], runs: list[Any]) -> None:
        guest = {} if self.guest is None else {"guest": self.guest}
        self.store.add_part({"solos": solos, "runs": runs, **guest})

    def _keep_runs(self, done: list[Done]) -> None:
        self._refuse_another_guest(done)
        found: list[Any] = []
        for one in done:
            cell, repeat, report = one["cell"], one["repeat"], one["report"]
            if report is None:
                keys, seed = self.plan.cells[cell][1], self.plan.seed_of(repeat)
                self.failed.append(Failure(keys, seed, one["error"] or "no result"))
                continue
            found.append((cell, repeat, report))
            self.reports.setdefault(cell, {})[repeat] = report
        self._add_part([], found)
        for cell in sorted({cell for cell, _, _ in found}):
            self._end_cell(cell)

    def _end_cell(self, cell: int) -> None:
        """Writes the tables of a cell whose runs have all ended."""
        reports = self.reports.get(cell, {})
        if len(reports) < self.plan.repeat:
            return
        # Each report has one repeat, with the number 0.
        results = [
            (_native.Report.parse(reports[repeat]), repeat) for repeat in range(self.plan.repeat)
        ]
        columns = self.plan.columns(cell)
        tables = _native.tables_of(results, columns, with_wall=False)
        tables["wall_times"] = _native.wall_times_of(results, columns)
        self.store.add_cell(cell, tables.items())
        del self.reports[cell]
