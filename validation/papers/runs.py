"""Makes the runs, and reads those of the lab that `validation/lab.json` keeps."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import wakeai

ROOT = Path(__file__).parents[2]


def simulate(
    scenario: str,
    conditions: Sequence[str],
    *,
    repeat: int,
    records: bool = False,
    keys: Mapping[str, Any] | None = None,
    seed: int = 1,
) -> wakeai.Result:
    """Runs conditions of a scenario file, whose path is relative to the root of the project."""
    print(f"  {scenario}: {', '.join(conditions)}", file=sys.stderr)
    return wakeai.run(ROOT / scenario, keys, repeat=repeat, conditions=conditions, records=records, seed=seed)


def command(scenario: str, condition: str, *, repeat: int, seed: int = 1, records: bool = False) -> str:
    """The command for runs of one condition."""
    parts = [f"wakeai sim {scenario} --conditions {condition}"]
    if repeat != 1:
        parts.append(f"--repeat {repeat}")
    if seed != 1:
        parts.append(f"--seed {seed}")
    if records:
        parts.append("--out DIR")
    return " ".join(parts)


def runs(result: wakeai.Result, condition: str) -> pl.DataFrame:
    """The runs of a condition."""
    return result.to_polars("runs").filter(pl.col("condition") == condition)


def mean(result: wakeai.Result, condition: str, column: str) -> float:
    """The mean over the repeats of a column of the table `runs`."""
    return number(runs(result, condition)[column].mean())


def by_station(result: wakeai.Result, condition: str, column: str = "goodput_mbps") -> dict[str, float]:
    """The mean over the repeats of a column of the table `stations`."""
    rows = result.to_polars("stations").filter(pl.col("condition") == condition)
    means = rows.group_by("station", maintain_order=True).agg(pl.mean(column))
    return {station: number(value) for station, value in means.iter_rows()}


def flows(result: wakeai.Result, condition: str) -> pl.DataFrame:
    """The flows of a condition, of all repeats."""
    return result.to_polars("flows").filter(pl.col("condition") == condition)


def number(value: object) -> float:
    """The value as a float. Raises `ValueError` if the runs do not give it."""
    if not isinstance(value, int | float):
        raise ValueError(f"a run gives no such figure: {value!r}")
    return float(value)


def lab(scenario: str, condition: str, column: str) -> float | None:
    """The mean over the lab's runs of a figure that `validation/lab.json` keeps; None without such a run."""
    found = [
        run[column] for run in lab_runs().get(scenario, {}).get("runs", []) if run["condition"] == condition
    ]
    return sum(found) / len(found) if found else None


@cache
def lab_runs() -> dict[str, Any]:
    """The reports of the lab, by scenario file."""
    kept: dict[str, Any] = json.loads((ROOT / "validation" / "lab.json").read_text(encoding="utf-8"))
    reports: dict[str, Any] = kept["reports"]
    return reports
