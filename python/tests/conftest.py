"""The scenario and the helpers that the tests share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import wakeai

ROOT = Path(__file__).resolve().parents[2]

PATIENCE = 800.0
"""The seconds that a test waits for another process. A busy machine is slow, and an error shows before."""

TEXT = """
name = "small"
duration = "4s"
warmup = "1s"

[access_point]
standard = "802.11n"

[[stations]]
name = "phone"
count = 2

[[flows]]
from = "phone"
to = "server"

[[conditions]]
name = "default"

[[conditions]]
name = "airtime"
law = "airtime"
"""


@pytest.fixture
def scenario() -> wakeai.Scenario:
    """Two stations that upload for four simulated seconds."""
    return wakeai.Scenario.parse(TEXT)


@pytest.fixture
def scenario_file(tmp_path: Path) -> Path:
    """The file of that scenario."""
    path = tmp_path / "small.toml"
    path.write_text(TEXT)
    return path


def python(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Runs Python in this environment, at the root of the repository."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, **more},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def files(directory: Path) -> dict[str, bytes]:
    """All files below a directory whose content must not depend on how a grid was made."""
    found = (path for path in directory.rglob("*") if path.is_file())
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in found
        if path.name != "wall_times.parquet"
    }
