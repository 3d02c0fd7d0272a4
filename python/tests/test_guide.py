"""Every command and snippet of the guide runs as it is printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import wakeai

from .conftest import PATIENCE, ROOT, files

GUIDE = (ROOT / "docs/guides/python.md").read_text(encoding="utf-8")
PLOTS = (ROOT / "docs/guides/plots.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", GUIDE + PLOTS, re.MULTILINE | re.DOTALL)
SNIPPETS = [text for language, text in BLOCKS if language == "python"]
COMMANDS = [text for language, text in BLOCKS if language == "sh"]


def run(text: str, directory: Path) -> None:
    """Runs a snippet as a script, at a place that has the repository's scenarios."""
    (directory / "scenarios").symlink_to(ROOT / "scenarios")
    lines = [line for line in text.splitlines(keepends=True)]
    body = "".join("    " + line if line.strip() else line for line in lines)
    script = directory / "snippet.py"
    script.write_text(f'if __name__ == "__main__":\n{body}')
    done = subprocess.run(
        [sys.executable, str(script)], cwd=directory, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("text", [text for text in SNIPPETS if "distributed" not in text])
def test_a_snippet_runs(text: str, tmp_path: Path) -> None:
    run(text, tmp_path)


@pytest.mark.release
@pytest.mark.parametrize("text", [text for text in SNIPPETS if "distributed" in text])
def test_a_snippet_with_a_cluster_runs(text: str, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    run(text, tmp_path)


def test_the_commands_run(tmp_path: Path) -> None:
    install, grid = COMMANDS
    assert install == 'pip install "./python[polars]"\n'  # scripts/python-tests installs the wheel
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    # The Rust command hands its arguments over (crates/cli/tests/grid.rs).
    words = grid.split()
    assert words[:2] == ["wakeai", "grid"]
    console_script = Path(sys.executable).with_name("wakeai-grid")
    subprocess.run([console_script, *words[2:]], cwd=tmp_path, check=True, timeout=PATIENCE)
    assert len(wakeai.open(tmp_path / "results/grid")["runs"]) == 3 * 2 * 3
    assert not any(name.startswith("parts") for name in files(tmp_path / "results/grid"))


def test_the_guide_names_every_table(scenario: wakeai.Scenario) -> None:
    for name in wakeai.run(scenario, records=True).tables:
        assert f"`{name}`" in GUIDE


def test_the_links_lead_somewhere() -> None:
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", GUIDE + PLOTS)
    for target in targets:
        if not target.startswith("https://"):
            assert os.path.exists(ROOT / "docs/guides" / target), target
