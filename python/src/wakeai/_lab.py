"""Runs of the lab in guests, by the program `wakeai`, for the cells of a grid."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypedDict

from ._errors import GridError, RunError


class Lab(TypedDict):
    """How the runs of a grid are made in guests."""

    kernel: str
    """The kernel, as of `wakeai lab --kernel`."""
    modules: str | None
    """The directory of an image's modules."""
    memory: int | None
    """The memory of each guest in MB."""


def program() -> str:
    """The path of the program `wakeai`."""
    found = os.environ.get("WAKEAI_PROGRAM") or shutil.which("wakeai")
    if found is None:
        raise GridError(
            "a grid of the lab needs the program wakeai, and there is none in PATH; install it, or name its file in "
            "WAKEAI_PROGRAM"
        )
    return found


@contextmanager
def _directory() -> Iterator[Path]:
    """A directory for the files of a command. It is also removed where SIGTERM ends this process meanwhile."""
    is_main = threading.current_thread() is threading.main_thread()
    if is_main:  # else another program's thread, such as Dask's, makes the run
        before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        with tempfile.TemporaryDirectory(prefix="wakeai-run-") as name:
            yield Path(name)
    finally:
        if is_main:
            signal.signal(signal.SIGTERM, before)


def _made(lab: Lab, scenario: str, seed: int, options: list[str], directory: Path) -> dict[str, Any]:
    """What one command prints as JSON."""
    file = directory / "scenario.toml"
    file.write_text(scenario, encoding="utf-8")
    command = [program(), "lab", os.fspath(file), "--kernel", lab["kernel"], "--seed", str(seed)]
    if lab["modules"] is not None:
        command += ["--modules", lab["modules"]]
    if lab["memory"] is not None:
        command += ["--memory", str(lab["memory"])]
    # The guest ends with this thread (setpriv(1)), also where it is killed.
    made = subprocess.run(
        ["setpriv", "--pdeathsig", "TERM", "--", *command, *options],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if made.returncode != 0:
        said = [line for line in made.stderr.splitlines() if line.startswith("wakeai: ")]
        reason = said[-1].removeprefix("wakeai: ") if said else f"exit status {made.returncode}"
        raise RunError(f"on {socket.gethostname()}: {reason}")
    found: dict[str, Any] = json.loads(made.stdout)
    return found


def run(
    lab: Lab, scenario: str, seed: int, conditions: list[str], known: list[tuple[str, int, float]]
) -> dict[str, Any]:
    """The report of one repeat of the conditions."""
    with _directory() as directory:
        file = directory / "known.json"
        file.write_text(json.dumps(known), encoding="utf-8")
        options = ["--json", "--known", os.fspath(file)]
        if conditions:
            options += ["--conditions", ",".join(conditions)]
        return _made(lab, scenario, seed, options, directory)


def solo(
    lab: Lab, scenario: str, seed: int, conditions: list[str], key: str
) -> tuple[float, dict[str, Any]]:
    """The goodput of a solo run in Mbit/s, and the guest that made it."""
    with _directory() as directory:
        file = directory / "key"
        file.write_text(key, encoding="utf-8")
        options = ["--solo", os.fspath(file)]
        if conditions:
            options += ["--conditions", ",".join(conditions)]
        found = _made(lab, scenario, seed, options, directory)
        return float(found["mbps"]), found["guest"]
