"""Grids of the lab, whose program is a script here: what it is told, and what is made of its answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import wakeai
from wakeai import _grid, _native

from .conftest import PATIENCE
from .test_grid import Here

SCENARIO = """
name = "two"
duration = "2s"
access_point = { standard = "802.11n" }
stations = [{ name = "tablet", count = 1 }]
flows = [{ from = "tablet", to = "server" }]
"""

GUEST = {
    "kernel": "6.12.1",
    "kernel_digest": "01",
    "image_digest": "02",
    "emulator": "qemu 7.2",
    "clock": "1 ns per instruction",
    "memory_mb": 1024,
}


def program(directory: Path, monkeypatch: pytest.MonkeyPatch, answers: dict[str, object]) -> Path:
    """A program that keeps its arguments, and answers from `answers`."""
    report, _ = _native.run(
        _native.Scenario.parse(SCENARIO),
        seed=1,
        repeat=1,
        conditions=[],
        jobs=1,
        out=None,
        force=False,
        captures=False,
        known=[],
    )
    run = {**json.loads(report.to_json()), "world": "lab", "guest": GUEST}
    run["guest"] = {**GUEST, **{key: value for key, value in answers.items() if key in GUEST}}
    (directory / "run.json").write_text(json.dumps(run))
    (directory / "solo.json").write_text(json.dumps({"mbps": 40.5, "guest": GUEST}))
    made = directory / "wakeai"
    made.write_text(
        "#!/bin/sh\n"
        f"echo \"$@\" >>{directory}/asked\n"
        f"case $* in *--solo*) cat {directory}/solo.json ;;\n"
        f"*) cat \"${{11}}\" >>{directory}/known; cat {directory}/run.json ;; esac\n"
    )
    made.chmod(0o700)
    monkeypatch.setenv("WAKEAI_PROGRAM", os.fspath(made))
    return directory / "asked"


def plan(repeat: int = 2) -> _grid.Plan:
    axes = [_grid.Axis("stations.tablet.count", ["1", "2"], [1, 2])]
    lab = _grid.lab_of("lab", "6.12", None, 2048)
    return _grid.Plan(wakeai.Scenario.parse(SCENARIO), axes, 1, repeat, [], lab)


def test_each_cell_and_seed_is_a_command_and_solo_runs_are_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = program(tmp_path, monkeypatch, {})
    pool = Here()
    grid = _grid.make(plan(), pool, tmp_path / "out", False)
    assert grid.failed == []
    commands = asked.read_text().splitlines()
    assert sum("--solo" in command for command in commands) == 2, "one for each seed"
    runs = [command for command in commands if "--solo" not in command]
    assert len(runs) == 4
    assert all("--kernel 6.12 --seed" in run and "--memory 2048" in run for run in runs)
    assert "40.5" in (tmp_path / "known").read_text()
    assert grid.to_polars("runs").height == 4
    again = Here()
    _grid.make(plan(), again, tmp_path / "out", False)
    assert again.made == [], "it is complete"


def test_a_worker_with_another_image_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, monkeypatch, {"image_digest": "03"})
    grid = _grid.make(plan(1), Here(), tmp_path / "out", False)
    assert len(grid.failed) == 2
    assert all(
        os.uname().nodename in one.reason and "another image_digest" in one.reason
        for one in grid.failed
    )


def test_what_a_grid_of_the_lab_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments, words in [
        (("moon", None, None, None), "expected sim or lab"),
        (("lab", None, None, None), "needs a kernel"),
        (("lab", "host", None, None), "needs a kernel"),
        (("sim", "6.12", None, None), "world"),
    ]:
        with pytest.raises(wakeai.GridError, match=words):
            _grid.lab_of(*arguments)


def test_a_worker_whose_grid_was_killed_ends_its_guest_and_leaves_no_file(tmp_path: Path) -> None:
    made = tmp_path / "wakeai"
    made.write_text(f"#!/bin/sh\necho $$ >{tmp_path}/process\nexec sleep 60\n")
    made.chmod(0o700)
    files = tmp_path / "files"
    files.mkdir()
    task = {
        "cell": 0,
        "repeat": 0,
        "scenario": SCENARIO,
        "seed": 1,
        "conditions": [],
        "solos": [],
        "solo": None,
        "lab": {"kernel": "6.12", "modules": None, "memory": None},
    }
    worker = subprocess.Popen(
        [sys.executable, "-m", "wakeai._worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "WAKEAI_PROGRAM": os.fspath(made), "TMPDIR": os.fspath(files)},
        text=True,
    )
    assert worker.stdin is not None
    with worker:
        worker.stdin.write(json.dumps([task]) + "\n")
        worker.stdin.flush()
        process = tmp_path / "process"
        until = time.monotonic() + PATIENCE
        while not (process.exists() and process.read_text().endswith("\n")):
            assert time.monotonic() < until
            time.sleep(0.01)
        assert list(files.iterdir()) != []
        worker.stdin.close()  # as the kernel does for a grid that was killed
        worker.wait(30)
    assert list(files.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(int(process.read_text()), 0)
