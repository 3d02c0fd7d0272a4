"""The command line of grids: `wakeai grid`, `wakeai-grid` and `python -m wakeai grid`."""

from __future__ import annotations

import argparse
import sys
import tomllib
from pathlib import Path
from typing import Any

from . import _grid, _pools
from ._errors import GridError, RunError, ScenarioError
from ._result import processors
from ._scenario import Scenario


def split(values: str) -> list[str]:
    """The values of `a,b,c`. A comma in quotes, brackets or braces does not separate."""
    parts, depth, quote = [""], 0, ""
    for letter in values:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "[{":
            depth += 1
        elif letter in "]}":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append("")
            continue
        parts[-1] += letter
    return parts


def axis(text: str) -> _grid.Axis:
    """Reads the value of `--set`: `KEY=a,b,c`."""
    key, equals, values = text.partition("=")
    if not key or not equals or not values:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected KEY=VALUE,VALUE,…")
    texts = split(values)
    return _grid.Axis(key, texts, [_typed(value) for value in texts])


def _typed(text: str) -> Any:
    """The value for the column of the key: the scalar that TOML reads, or else the text."""
    try:
        value = tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        return text
    return value if isinstance(value, (bool, int, float, str)) else text


def parser(program: str) -> argparse.ArgumentParser:
    """The parser of the command's arguments."""
    made = argparse.ArgumentParser(
        prog=program,
        description="Runs a scenario with every combination of values of some keys. An "
        "interrupted grid continues where it stopped when the same command is given again.",
    )
    made.add_argument("scenario", metavar="FILE", type=Path, help="the scenario")
    made.add_argument(
        "--set",
        dest="axes",
        metavar="KEY=A,B,C",
        type=axis,
        action="append",
        default=[],
        help="a key and its values; may be given several times",
    )
    made.add_argument("--repeat", metavar="N", type=int, default=1, help="the number of seeds")
    made.add_argument("--seed", metavar="N", type=int, default=1, help="the first seed")
    made.add_argument("--conditions", metavar="A,B", default="", help="the conditions to run")
    made.add_argument(
        "--world", choices=("sim", "lab"), default="sim", help="simulate, or run in guests"
    )
    made.add_argument(
        "--kernel", metavar="VERSION|latest|IMAGE", help="of the lab: the kernel of the guests"
    )
    made.add_argument(
        "--modules", metavar="DIR", help="of the lab: the modules of an IMAGE that are not beside it"
    )
    made.add_argument("--memory", metavar="MB", type=int, help="of the lab: each guest's memory")
    made.add_argument(
        "--jobs", metavar="N", type=int, help="the number of processes; by default one per processor"
    )
    made.add_argument(
        "--dask", metavar="ADDRESS", help="run on the Dask cluster with this scheduler instead"
    )
    made.add_argument(
        "--out", metavar="DIR", type=Path, required=True, help="the directory of the results"
    )
    return made


def say(text: str) -> None:
    """Prints a message for the user on standard error. One that cannot be written is lost."""
    try:
        if sys.stderr is not None:
            print(f"wakeai: {text}", file=sys.stderr, flush=True)
    except OSError:
        pass


def grid_main(arguments: list[str] | None = None, program: str = "wakeai-grid") -> int:
    """Makes a grid. Returns the exit status."""
    asked = parser(program).parse_args(arguments)
    try:
        failed = _make(asked)
    except (ScenarioError, GridError, RunError, OSError) as error:
        say(str(error))
        return 2
    except KeyboardInterrupt:
        say("the grid was interrupted; the same command continues it")
        return 130
    for failure in failed:
        keys = ", ".join(f"{key}={value}" for key, value in failure.keys.items())
        say(f"failed: {keys} seed {failure.seed}: {failure.reason}")
    say(f"the tables are in {asked.out}/cells")
    return 1 if failed else 0


def _make(asked: argparse.Namespace) -> list[_grid.Failure]:
    conditions = [name for name in asked.conditions.split(",") if name]
    lab = _grid.lab_of(asked.world, asked.kernel, asked.modules, asked.memory)
    plan = _grid.Plan(
        Scenario.load(asked.scenario), asked.axes, asked.seed, asked.repeat, conditions, lab
    )
    if asked.dask is None:
        pool: _pools.Pool = _pools.Processes(asked.jobs or processors())
        try:
            return _grid.make(plan, pool, asked.out, None).failed
        finally:
            pool.close()
    try:
        from distributed import Client
    except ImportError:
        raise GridError("--dask needs the package distributed: pip install 'wakeai[dask]'") from None
    with Client(asked.dask) as client:
        pool = _pools.Dask(client)
        try:
            return _grid.make(plan, pool, asked.out, None).failed
        finally:
            pool.close()


def main() -> int:
    """Runs `python -m wakeai COMMAND`. Returns the exit status."""
    if sys.argv[1:2] != ["grid"]:
        say("usage: python -m wakeai grid FILE --set KEY=A,B,C --out DIR")
        return 2
    return grid_main(sys.argv[2:], "wakeai grid")
