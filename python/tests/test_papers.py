"""The papers' figures: `make figures`, and its page."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAPERS = ROOT / "validation" / "papers"


def rows_of_guide() -> list[list[str]]:
    """The rows of the table of docs/guides/papers.md."""
    lines = (ROOT / "docs" / "guides" / "papers.md").read_text(encoding="utf-8").splitlines()
    table = [line for line in lines if line.startswith("| ")][1:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def test_text_is_escaped_and_a_drawing_is_part_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PAPERS))
    from matplotlib.figure import Figure as Drawing

    import figure
    import page

    drawing = Drawing()
    drawing.subplots().plot([1, 2])
    hostile = "<script>alert('x')</script>"
    made = figure.Figure(
        name=hostile,
        shows=hostile,
        paper=hostile,
        ours=hostile,
        agrees=False,
        deviation=hostile,
        command=hostile,
        columns=[hostile],
        rows=[[hostile], [1.25], [None]],
        drawing=drawing,
    )
    text = page.html([figure.Paper(hostile, hostile, [made], hostile)], 1)
    assert "<script" not in text and "&lt;script&gt;" in text
    assert text.count("data:image/svg+xml;base64,") == 1
    assert "<td>1.250</td>" in text and "<td>–</td>" in text
    assert "0 of 1 figures" in text and "Does not agree." in text


def test_bad_usage_exits_with_2(tmp_path: Path) -> None:
    for arguments in (["--repeat", "0"], ["--papers", "nobody"]):
        command = [sys.executable, str(PAPERS), "--out", str(tmp_path), *arguments]
        refused = subprocess.run(command, capture_output=True, text=True, check=False)
        assert refused.returncode == 2 and "usage: make figures" in refused.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.release
@pytest.mark.timeout(1500)
def test_the_guide_says_which_figures_agree(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(PAPERS), "--out", str(tmp_path)], check=True)
    made = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))["figures"]
    assert rows_of_guide() == [
        [one["paper"], one["name"], one["shows"], "yes" if one["agrees"] else "no"] for one in made
    ]
    for one in made:
        assert all(one[key] for key in ("stated", "found", "deviation", "command")), one["name"]
        assert all(len(row) == len(one["columns"]) for row in one["rows"]), one["name"]
    assert (tmp_path / "figures.html").stat().st_size < 5_000_000
