"""Makes the runs, and reads those of the lab that `validation/lab.json` keeps, without the unfaithful ones."""

from __future__ import annotations

import json
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import wakeai

ROOT = Path(__file__).parents[2]

WAITS_MS = 50
"""A run of the lab whose ordinary processes waited longer for a processor is not used, because its agents decided
late. The bound is on the 99th percentile, as in `crates/experiment/validation/src/lab.rs`."""


TRIED = 2
"""Seeds for each row of a table of what was tried."""


def simulate(
    scenario: str,
    conditions: Sequence[str],
    *,
    repeat: int,
    records: bool = False,
    keys: Mapping[str, Any] | None = None,
    seed: int = 1,
    solos: bool = True,
) -> wakeai.Result:
    """Runs conditions of a scenario file, whose path is relative to the root of the project.

    Without `solos` no station is run alone, which takes as long as the runs themselves: for figures that need no
    solo goodput, without agents of `airtime` and without reservations.
    """
    print(f"  {scenario}: {', '.join(conditions)}", file=sys.stderr)
    given = {} if solos else {f"stations.{name}.max": "1Gbit/s" for name in groups(scenario)}
    return wakeai.run(
        ROOT / scenario, {**given, **(keys or {})}, repeat=repeat, conditions=conditions, records=records, seed=seed
    )


def groups(scenario: str) -> list[str]:
    """The names of a scenario's groups of stations."""
    keys = tomllib.loads((ROOT / scenario).read_text(encoding="utf-8"))
    return [group["name"] for group in keys["stations"]]


def command(
    scenario: str,
    condition: str,
    *,
    repeat: int = 1,
    seed: int = 1,
    records: bool = False,
    world: str = "sim",
    keys: Mapping[str, Any] | None = None,
) -> str:
    """The command for runs of one condition."""
    parts = [f"wakeai {world} {scenario} --conditions {condition}"]
    parts += [f"--set {key}={value}" for key, value in (keys or {}).items()]
    if repeat != 1:
        parts.append(f"--repeat {repeat}")
    if seed != 1:
        parts.append(f"--seed {seed}")
    if records:
        parts.append("--out DIR")
    return " ".join(parts)


def rows_of(result: wakeai.Result, table: str, condition: str) -> pl.DataFrame:
    """The rows of a condition in a table, of all repeats."""
    return result.to_polars(table).filter(pl.col("condition") == condition)


def runs(result: wakeai.Result, condition: str) -> pl.DataFrame:
    """The runs of a condition."""
    return rows_of(result, "runs", condition)


def flows(result: wakeai.Result, condition: str) -> pl.DataFrame:
    """The flows of a condition, of all repeats."""
    return rows_of(result, "flows", condition)


def by_run(rows: pl.DataFrame) -> list[pl.DataFrame]:
    """The rows of each repeat."""
    return rows.partition_by("repeat", maintain_order=True)


def mean(result: wakeai.Result, condition: str, column: str) -> float:
    """The mean over the repeats of a column of the table `runs`."""
    return number(runs(result, condition)[column].mean())


def by_station(result: wakeai.Result, condition: str, column: str = "goodput_mbps") -> dict[str, float]:
    """The mean over the repeats of a column of the table `stations`."""
    rows = rows_of(result, "stations", condition)
    means = rows.group_by("station", maintain_order=True).agg(pl.mean(column))
    return {station: number(value) for station, value in means.iter_rows()}


def group(result: wakeai.Result, condition: str, name: str, column: str = "goodput_mbps") -> float:
    """The mean over the repeats of a figure of a group of stations."""
    rows = rows_of(result, "groups", condition).filter(pl.col("group") == name)
    return number(rows[column].mean())


def pair(result: wakeai.Result, condition: str) -> tuple[float, float]:
    """The goodput of the two flows, means over the repeats, Mbit/s."""
    rows = flows(result, condition)
    first, second = (number(rows.filter(pl.col("flow") == flow)["goodput_mbps"].mean()) for flow in (0, 1))
    return first, second


def number(value: object) -> float:
    """The value as a float. Raises `ValueError` if the runs do not give it."""
    if not isinstance(value, int | float):
        raise ValueError(f"a run gives no such figure: {value!r}")
    return float(value)


def average(values: Iterable[float]) -> float:
    """The mean of some values. Raises `ValueError` without any."""
    every = list(values)
    if not every:
        raise ValueError("no run gives this figure")
    return sum(every) / len(every)


def jain(values: Sequence[float]) -> float:
    """Jain's index."""
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


def change(value: float, reference: float) -> str:
    """The relative deviation of a value from a reference, in words."""
    return f"{value / reference - 1:+.1%}"


def lab(scenario: str, condition: str, column: str) -> float | None:
    """The mean over the lab's runs of a column of the table `runs`; None without such a run."""
    return mean(lab_runs(scenario), condition, column) if has_lab(scenario, condition) else None


def has_lab(scenario: str, condition: str) -> bool:
    """Whether the lab has made runs of the condition that can be used."""
    return not runs(lab_runs(scenario), condition).is_empty()


@cache
def lab_runs(scenario: str) -> wakeai.Result:
    """The lab's runs of a scenario file that were faithful, with short waits for a processor."""
    kept = json.loads((ROOT / "validation" / "lab.json").read_text(encoding="utf-8"))
    report = kept["reports"].get(scenario) or {"scenario": "", "world": "lab", "version": "", "seed": 1, "runs": []}
    lateness = [run["lateness"] for run in report["runs"]]
    used = [late["faithful"] and late.get("waits_p99_ms", 0) <= WAITS_MS for late in lateness]
    report["runs"] = [run for run, use in zip(report["runs"], used, strict=True) if use]
    with tempfile.TemporaryDirectory(prefix="wakeai-") as directory:
        (Path(directory) / "result.json").write_text(json.dumps(report), encoding="utf-8")
        return wakeai.open(directory)
