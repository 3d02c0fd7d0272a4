"""The tutorials, each block run in order as it is printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import PATIENCE, ROOT
from .programs import ANY_LATENESS, PROGRAM, machine

pytestmark = pytest.mark.release


def script_of(guide: str, directory: Path) -> Path:
    """Writes the blocks of a guide as one script for bash. Returns its path."""
    text = (ROOT / "docs" / "guides" / guide).read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    lines = ["set -eu"]
    for index, (language, block) in enumerate(blocks):
        if language == "python":
            (directory / f"block{index}.py").write_text(block, encoding="utf-8")
            lines.append(f"python block{index}.py")
        else:
            assert language == "sh", f"a block of {guide} that is not run: {language!r}"
            lines.append(block)
    script = directory / "guide.sh"
    script.write_text("\n".join(lines), encoding="utf-8")
    return script


def follow(guide: str, directory: Path) -> str:
    """Runs the blocks of the guide. Returns the output.

    `wakeai lab` has wider bounds than a reader's: on a busy machine its run is not faithful, and then it exits with 1.
    """
    programs = directory / "bin"
    programs.mkdir()
    wakeai = programs / "wakeai"
    wakeai.write_text(
        f'#!/bin/sh\n[ "$1" != lab ] || set -- "$@" {" ".join(ANY_LATENESS)}\nexec {PROGRAM.resolve()} "$@"\n',
        encoding="utf-8",
    )
    wakeai.chmod(0o755)
    path = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", script_of(guide, directory)],
        cwd=directory,
        env={**os.environ, "PATH": path, "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_a_figure_for_a_paper(tmp_path: Path) -> None:
    with machine():
        said = follow("researcher.md", tmp_path)
    assert "Jain" in said and "stations.tablet.count" in said
    assert (tmp_path / "crowd.pdf").stat().st_size > 5_000
    for page in ("one.html", "both.html"):
        assert "Goodput of each station" in (tmp_path / page).read_text(encoding="utf-8")


@pytest.fixture
def clean() -> Iterator[None]:
    """Removes the namespaces of the guide if it failed before its last block."""
    yield
    for namespace in ("wk-sender", "wk-receiver"):
        listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
        if namespace in listed.split():
            pids = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True, check=True)
            for pid in pids.stdout.split():
                os.kill(int(pid), 9)
            subprocess.run(["ip", "netns", "delete", namespace], check=True)


def test_watch_one_connection(tmp_path: Path, clean: None) -> None:
    with machine():
        said = follow("kernel.md", tmp_path)
    assert "iperf3" in said and "cwnd" in said
    assert (tmp_path / "connection.png").stat().st_size > 5_000
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    assert "wk-" not in listed
