"""The program `wakeai` beside the package, and what the tests that run it need of the machine."""

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


@contextlib.contextmanager
def machine() -> Iterator[None]:
    """Holds the machine, as the tests of the kernel parts do one at a time. Skips where they cannot run."""
    why = obstacle()
    if why is not None:
        assert os.environ.get("WAKEAI_REQUIRE_KERNEL") != "1", f"WAKEAI_REQUIRE_KERNEL=1, but {why}"
        pytest.skip(why)
    with open(Path(tempfile.gettempdir()) / "wakeai-kernel-tests.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def obstacle() -> str | None:
    """Why the kernel parts cannot run here."""
    if os.geteuid() != 0:
        return "not root"
    found = subprocess.run([PROGRAM, "doctor", "--json"], capture_output=True, text=True, check=False)
    doctor = json.loads(found.stdout)
    return None if doctor["can_monitor"] and doctor["can_bound"] else "the kernel lacks a feature"
