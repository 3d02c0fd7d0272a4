"""Runs a scenario, and reads what a command has written."""

from __future__ import annotations

import json
import os
import re
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _grid_files, _native, _scenario
from ._errors import ReadError
from ._native import Table
from ._scenario import Scenario

if TYPE_CHECKING:
    import pandas
    import polars


class Tables:
    """Named tables. Each is Arrow; `to_polars` and `to_pandas` convert it."""

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self.tables = dict(tables)
        """The tables by name. Any tool that takes an Arrow stream takes such a table."""

    def __getitem__(self, name: str) -> Table:
        try:
            return self.tables[name]
        except KeyError:
            known = ", ".join(sorted(self.tables))
            raise KeyError(f"no table {name!r}; there are {known}") from None

    def to_polars(self, name: str = "runs") -> polars.DataFrame:
        """The table `name` as a polars frame, which shares its memory."""
        import polars

        return polars.DataFrame(self[name])

    def to_pandas(self, name: str = "runs") -> pandas.DataFrame:
        """The table `name` as a pandas frame (needs pyarrow)."""
        import pyarrow

        frame: pandas.DataFrame = pyarrow.table(self[name]).to_pandas()
        return frame


class Result(Tables):
    """The result of runs.

    The tables: `runs` has a row for each run; `stations`, `groups` and `flows` have one for each
    station and direction, group and flow of each run. Records that were kept add theirs: `goodput`,
    `samples`, `events`, `queues`, `airtime` (`docs/reference/records.md`).
    """

    def __init__(
        self, tables: Mapping[str, Table], report: _native.Report | None, notes: Sequence[str] = ()
    ) -> None:
        super().__init__(tables)
        self._report = report
        self.notes = list(notes)
        """Messages of the simulator, such as a key that has no effect."""

    @property
    def report(self) -> dict[str, Any]:
        """The report as `--json` prints it; empty for a recording of `wakeai top`."""
        text = self._report.to_json() if self._report is not None else "{}"
        report: dict[str, Any] = json.loads(text)
        return report

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} {len(table)}" for name, table in sorted(self.tables.items()))
        return f"<wakeai.Result, rows: {sizes}>"


def run(
    scenario: Scenario | Mapping[str, Any] | str | os.PathLike[str],
    keys: Mapping[str, Any] | None = None,
    /,
    *,
    seed: int = 1,
    repeat: int = 1,
    conditions: Sequence[str] = (),
    jobs: int | None = None,
    records: bool = False,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    pcap: bool = False,
    **overrides: Any,
) -> Result:
    """Simulates a scenario in this process, without the GIL. Ctrl-C ends it.

    `scenario` is a `Scenario`, a mapping of its keys, or a file. Repeat number r (from 0) has the
    seed `seed + r`. `conditions` names those to run; without names all are run. `jobs` is the
    number of runs at once, the number of processors by default. `records` also gives the tables of
    samples, events, queues and airtime; `out` writes them and the result into a directory, as the
    command's `--out` does. `force` and `pcap` are as the command's options. `keys` and the further
    arguments change keys of the scenario: `{"stations.tablet.count": 40}`, `duration="60s"`.

    Raises `ScenarioError` for a refused key, and `RunError` if the simulator cannot run the
    scenario.
    """
    chosen = _scenario.of(scenario).replace(keys, **overrides)

    def simulate(directory: str | None) -> tuple[_native.Report, list[str]]:
        return _native.run(
            chosen._native,
            seed=seed,
            repeat=repeat,
            conditions=list(conditions),
            jobs=jobs or processors(),
            out=directory,
            force=force,
            captures=pcap,
            known=[],
        )

    if out is not None:
        directory = os.fspath(out)
        report, notes = simulate(directory)
        tables = _parquet(Path(directory))
    elif records:
        with tempfile.TemporaryDirectory(prefix="wakeai-") as directory:
            report, notes = simulate(directory)
            tables = _parquet(Path(directory))
    else:
        report, notes = simulate(None)
        tables = {}
    for note in notes:
        warnings.warn(note, stacklevel=2)
    return Result({**tables, **_native.tables_of([(report, 0)])}, report, notes)


def open(directory: str | os.PathLike[str]) -> Result:
    """Reads the directory that `--out`, `wakeai top --record`, `run` or `grid` wrote.

    Every Parquet file is a table. The parts of a recording (`connections-000001.parquet`, …) are
    one table (`connections`). Raises `ReadError` where there is nothing to read.
    """
    path = Path(directory)
    if _grid_files.is_grid(path):
        return Result(_grid_files.read_tables(path), None)
    tables = _parquet(path)
    report = None
    if (path / "result.json").is_file():
        text = (path / "result.json").read_text(encoding="utf-8")
        try:
            report = _native.Report.parse(text)
        except ValueError as error:
            raise ReadError(f"{path / 'result.json'}: {error}") from error
        tables.update(_native.tables_of([(report, 0)]))
    if not tables:
        raise ReadError(f"{path} holds no result: found neither result.json nor Parquet files")
    return Result(tables, report)


def _parquet(directory: Path) -> dict[str, Table]:
    """The Parquet files of a directory by name; numbered parts are joined."""
    parts: dict[str, list[str]] = {}
    for path in sorted(directory.glob("*.parquet")):
        name = re.sub(r"-[0-9]{6}$", "", path.stem)
        if name == "connections" and not is_complete(path):
            continue
        parts.setdefault(name, []).append(os.fspath(path))
    return {name: _native.read_parquet(paths) for name, paths in parts.items()}


def is_complete(connections: Path) -> bool:
    """Whether a part of a recording is complete. If it is, its file of readings, which is renamed
    last, has its final name."""
    readings = connections.name.replace("connections", "readings", 1)
    return readings == "readings.parquet" or connections.with_name(readings).is_file()


def processors() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0))
