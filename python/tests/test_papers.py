"""The papers' figures: `make figures`, and its page."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAPERS = ROOT / "validation" / "papers"
GUIDE = ROOT / "docs" / "guides" / "papers.md"


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
        more=[figure.Table([hostile], [[hostile]], hostile)],
        bounds=[figure.Bound(hostile, hostile, hostile, holds=False)],
    )
    further = figure.Further(hostile, hostile, made.more, [hostile], [figure.at_least("x", 0.95, 0.96)])
    text = page.html([figure.Paper(hostile, hostile, [made], hostile, [further])], 1)
    assert "<script" not in text and "&lt;script&gt;" in text
    assert "1 of 2 bounds" in text and "0.95 or more" in text
    assert text.count("data:image/svg+xml;base64,") == 1
    assert "<td>1.250</td>" in text and "<td>–</td>" in text
    assert "0 of 1 figures" in text and "Does not agree." in text


def test_bad_usage_exits_with_2(tmp_path: Path) -> None:
    for arguments in (["--repeat", "0"], ["--papers", "nobody"]):
        command = [sys.executable, str(PAPERS), "--out", str(tmp_path), *arguments]
        refused = subprocess.run(command, capture_output=True, text=True, check=False)
        assert refused.returncode == 2 and "usage: make figures" in refused.stderr
    assert not list(tmp_path.iterdir())


def report(windows: int) -> dict[str, object]:
    """A frontier of one setting, as `wakeai-validation frontier --json` prints it."""

    def point(place: float) -> dict[str, float]:
        return {"goodput": 40 + place, "index": 1.0, "p95_ms": 10**place - 1, "timeouts": 0.0}

    made = [{"label": f"{2 * place} (8)", "point": point(place)} for place in range(windows)]
    others = {"default": point(3), "lab: <default>": point(2)}
    return {"seeds": 1, "settings": [{"setting": "n-6", "law": point(1), "others": others, "windows": made}]}


def test_a_frontier_has_a_mark_for_each_window_the_law_and_each_condition(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "validation" / "frontier.py"), str(tmp_path)]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 1 and "frontier.json" in refused.stderr
    (tmp_path / "frontier.json").write_text(json.dumps(report(5)), encoding="utf-8")
    subprocess.run(command, check=True)
    svg = (tmp_path / "n-6.svg").read_text(encoding="utf-8")
    line = svg[svg.index('id="windows"') :]
    assert line[: line.index("</g>\n   </g>")].count("<use ") == 5
    assert [f'id="mark {name}"' in svg for name in ("law", "default", "lab: &lt;default&gt;")] == [True] * 3
    assert svg.count('id="mark ') == 3 and ">8 (8)</text>" in svg and "lab: &lt;default&gt;</text>" in svg


@pytest.mark.release
@pytest.mark.timeout(3000)
def test_the_guide_is_what_the_figures_give(tmp_path: Path) -> None:
    guide = tmp_path / "papers.md"
    subprocess.run([sys.executable, str(PAPERS), "--out", str(tmp_path), "--guide", str(guide)], check=True)
    assert guide.read_text(encoding="utf-8") == GUIDE.read_text(encoding="utf-8")
    made = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))
    for one in made["figures"]:
        assert all(one[key] for key in ("stated", "found", "deviation", "command")), one["name"]
        assert all(len(row) == len(one["columns"]) for row in one["rows"]), one["name"]
    tables = [table for part in [*made["figures"], *made["further"]] for table in part.get("more", part.get("tables"))]
    assert all(len(row) == len(table["columns"]) for table in tables for row in table["rows"])
    assert (tmp_path / "figures.html").stat().st_size < 5_000_000
    pictures = sorted(path.name for path in (tmp_path / "plots").iterdir())
    assert len(pictures) == 5
    for name in pictures:
        assert (GUIDE.parent / "plots" / name).is_file(), name
