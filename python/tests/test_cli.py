"""The command `python -m wakeai grid`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import wakeai
from wakeai import _cli

from .conftest import PATIENCE, files, python


def test_the_command_writes_what_the_function_writes(scenario_file: Path, tmp_path: Path) -> None:
    options = ["--set", "stations.phone.count=1,2", "--set", "duration=3s,4s", "--repeat", "2"]
    out = tmp_path / "command"
    grid = ["-m", "wakeai", "grid", str(scenario_file), *options, "--out", str(out)]
    done = python(*grid, "--jobs", "2")
    assert done.returncode == 0, done.stderr
    keys: dict[str, list[int] | list[str]] = {"stations.phone.count": [1, 2], "duration": ["3s", "4s"]}
    wakeai.grid(scenario_file, keys, repeat=2, processes=1, out=tmp_path / "function")
    assert files(out) == files(tmp_path / "function")
    assert python(*grid).returncode == 0
    other = python(*grid, "--seed", "2")
    assert other.returncode == 2
    assert "another grid" in other.stderr


def children(pid: int) -> list[int]:
    """The processes that the threads of a process have started."""
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in lists for child in path.read_text().split()]


def test_ctrl_c_ends_the_workers_and_the_same_command_goes_on(
    scenario_file: Path, tmp_path: Path
) -> None:
    options = ["--set", "stations.phone.count=1,2,3", "--set", "duration=60s", "--repeat", "4"]
    command = ["-m", "wakeai", "grid", str(scenario_file), *options, "--jobs", "2", "--out"]
    out = tmp_path / "cut"
    process = subprocess.Popen(
        [sys.executable, *command, str(out)], stderr=subprocess.PIPE, text=True
    )
    try:
        while not any((out / "parts").glob("[0-9]*.json")):
            assert process.poll() is None
            os.sched_yield()
        workers = children(process.pid)
        assert workers
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130, errors
    assert "continues it" in errors
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)
    assert python(*command, str(out)).returncode == 0
    assert python(*command, str(tmp_path / "whole")).returncode == 0
    assert files(out) == files(tmp_path / "whole")


def test_bad_usage_exits_with_2(scenario_file: Path, tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "out")]
    for arguments in (
        [],
        ["grid"],
        ["grid", str(scenario_file), "--set", "duration", *out],
        ["grid", str(scenario_file), "--set", "duration=soon", *out],
        ["grid", str(scenario_file), "--conditions", "none", *out],
        ["grid", "/nowhere/x.toml", *out],
        ["grid", str(scenario_file), "--repeat", "0", *out],
    ):
        done = python("-m", "wakeai", *arguments)
        assert done.returncode == 2, (arguments, done.stderr)
        assert "Traceback" not in done.stderr


def test_a_comma_in_quotes_or_brackets_does_not_separate_values() -> None:
    assert _cli.split("1,2,x") == ["1", "2", "x"]
    assert _cli.split('"a,b",[1,2],{ x = 1, y = 2 }') == ['"a,b"', "[1,2]", "{ x = 1, y = 2 }"]
    assert _cli.axis("a=1,true,2.5,5s").values == [1, True, 2.5, "5s"]
    assert _cli.axis('name="a,b"').values == ["a,b"]


def test_a_key_that_is_given_twice_is_refused(scenario_file: Path, tmp_path: Path) -> None:
    options = ["--set", "stations.phone.count=2", "--set", "stations.phone.count=4"]
    out = tmp_path / "out"
    done = python("-m", "wakeai", "grid", str(scenario_file), *options, "--out", str(out))
    assert done.returncode == 2, done.stderr
    assert "stations.phone.count is given twice" in done.stderr, done.stderr
    same = ["--set", "stations.phone.count=2,2"]
    done = python("-m", "wakeai", "grid", str(scenario_file), *same, "--out", str(out))
    assert done.returncode == 2, done.stderr
    assert "give each value once" in done.stderr, done.stderr
    assert not out.exists()


def test_messages_that_cannot_be_written_change_no_exit_status(
    scenario_file: Path, tmp_path: Path
) -> None:
    commands = [
        (["grid", str(scenario_file), "--set", "duration=2s", "--out", str(tmp_path / "out")], 0),
        (["grid", str(tmp_path / "nowhere.toml"), "--out", str(tmp_path / "other")], 2),
        (["grid", "--no-such-option"], 2),
        (["lab"], 2),
    ]
    for command, status in commands:
        with open("/dev/full", "w") as full:
            asked = [sys.executable, "-m", "wakeai", *command]
            done = subprocess.run(asked, stdout=full, stderr=full, check=False)
        assert done.returncode == status, command
        closed = subprocess.run(
            ["sh", "-c", 'exec "$@" >&- 2>&-', "sh", sys.executable, "-m", "wakeai", *command],
            check=False,
        )
        assert closed.returncode == status, command
