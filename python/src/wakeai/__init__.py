"""Experiments on devices that share one Wi-Fi access point, simulated in this process.

>>> import wakeai
>>> scenario = wakeai.Scenario.load("scenarios/quickstart.toml")
>>> result = wakeai.run(scenario, {"stations.tablet.count": 20}, repeat=10)
>>> result.to_polars("runs")

Each figure comes from the simulator's own report; this package computes none. Names of columns end
in the unit: `_mbps` is Mbit/s, `_ms` milliseconds, `_s` seconds, `_ns` nanoseconds. The pages
`docs/reference/records.md` and `docs/reference/scenario.md` describe the columns and the keys.
"""

from ._errors import GridError, Problem, ReadError, RunError, ScenarioError
from ._grid import Failure, Grid, grid
from ._native import Table, __version__
from ._result import Result, open, run
from ._scenario import Scenario

__all__ = [
    "Failure",
    "Grid",
    "GridError",
    "Problem",
    "ReadError",
    "Result",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Table",
    "__version__",
    "grid",
    "open",
    "run",
]
