"""The work of a grid's worker: the runs of a batch, one after another.

A task is a mapping of plain values, so that it reaches a process or a machine as JSON or by pickle.
"""

from __future__ import annotations

import json
import socket
import time
from typing import Any, NotRequired, TypedDict

from . import _lab, _native


class Task(TypedDict):
    """A run of one cell and seed, or a solo run (`cell` is -1) of one station alone."""

    cell: int
    repeat: int
    scenario: str
    """The scenario as TOML."""
    seed: int
    conditions: list[str]
    solos: list[tuple[str, int, float]]
    """Known solo goodputs: key of the solo run, seed, Mbit/s."""
    solo: str | None
    """The key of a solo run."""
    lab: NotRequired[_lab.Lab]
    """How the run is made in a guest; without it, it is simulated."""


class Done(TypedDict):
    """The result of a task."""

    cell: int
    repeat: int
    report: str | None
    """The report as JSON."""
    mbps: float | None
    """The solo goodput of a solo run."""
    error: str | None
    took_s: float
    """The real time, seconds."""
    guest: NotRequired[dict[str, Any]]
    """The guest that made the run."""
    host: NotRequired[str]
    """The name of the machine on which the guest ran."""


def work(tasks: list[Task]) -> list[Done]:
    """Makes the runs of a batch in this process."""
    return [_one(task) for task in tasks]


def _one(task: Task) -> Done:
    began = time.perf_counter()
    done: Done = {
        "cell": task["cell"],
        "repeat": task["repeat"],
        "report": None,
        "mbps": None,
        "error": None,
        "took_s": 0.0,
    }
    try:
        scenario = _native.Scenario.parse(task["scenario"])
        if "lab" in task:
            _in_guest(task, done)
        elif task["solo"] is not None:
            done["mbps"] = _native.solo(
                scenario, run=task["solo"], seed=task["seed"], conditions=task["conditions"]
            )
        else:
            report, _ = _native.run(
                scenario,
                seed=task["seed"],
                repeat=1,
                conditions=task["conditions"],
                jobs=1,
                out=None,
                force=False,
                captures=False,
                known=[(run, seed, mbps) for run, seed, mbps in task["solos"]],
            )
            done["report"] = report.to_json()
    except Exception as error:  # one run that fails must not cost the others of its batch
        done["error"] = f"{type(error).__name__}: {error}"
    done["took_s"] = time.perf_counter() - began
    return done


def _in_guest(task: Task, done: Done) -> None:
    """Makes a run of the lab."""
    text, seed, conditions = task["scenario"], task["seed"], task["conditions"]
    done["host"] = socket.gethostname()
    if task["solo"] is not None:
        done["mbps"], done["guest"] = _lab.solo(task["lab"], text, seed, conditions, task["solo"])
    else:
        report = _lab.run(task["lab"], text, seed, conditions, task["solos"])
        done["report"], done["guest"] = json.dumps(report), report["guest"]


def version(_: Any = None) -> str:
    """The version of the package on a worker."""
    return _native.__version__
