"""The program `wakeai`, and the use of the machine by tests that run it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import ROOT

PROGRAM = Path(os.environ.get("WAKEAI_PROGRAM", ROOT / "target" / "debug" / "wakeai"))
"""The program under test: `cargo build --bin wakeai` makes it."""

ANY_LATENESS = ("--lateness-p99", "10s", "--lateness-max", "60s", "--waits-p99", "60s")
"""Bounds for `wakeai lab` that no run exceeds: what these tests show does not depend on how busy the machine is."""


@contextlib.contextmanager
def machine() -> Iterator[None]:
    """Holds the lock of the tests of the kernel parts, of which one runs at a time.

    Skips the test if they cannot run here.
    """
    why = obstacle()
    if why is not None:
        assert os.environ.get("WAKEAI_REQUIRE_KERNEL") != "1", f"WAKEAI_REQUIRE_KERNEL=1, but {why}"
        pytest.skip(why)
    with open(Path(tempfile.gettempdir()) / "wakeai-kernel-tests.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def obstacle() -> str | None:
    """The reason why the kernel parts cannot run here, or None."""
    if os.geteuid() != 0:
        return "not root"
    found = subprocess.run([PROGRAM, "doctor", "--json"], capture_output=True, text=True, check=False)
    doctor = json.loads(found.stdout)
    return None if doctor["can_monitor"] and doctor["can_bound"] else "the kernel lacks a feature"
