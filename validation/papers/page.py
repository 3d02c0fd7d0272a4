"""One HTML file with the figures of all papers, and the same as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import jinja2
import wakeai

from figure import Paper, text_of

HERE = Path(__file__).parent


def html(papers: Sequence[Paper], repeat: int) -> str:
    """The page. All text is escaped; it loads nothing and runs no script."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["cell"] = text_of
    figures = [figure for paper in papers for figure in paper.figures]
    return environment.get_template("page.html").render(
        papers=papers,
        figures=figures,
        agreeing=sum(figure.agrees for figure in figures),
        repeat=repeat,
        version=wakeai.__version__,
    )


def machine_readable(papers: Sequence[Paper], repeat: int) -> str:
    """The figures without their drawings, as JSON."""
    figures = [
        {
            "paper": paper.short,
            "name": figure.name,
            "shows": figure.shows,
            "stated": figure.paper,
            "found": figure.ours,
            "agrees": figure.agrees,
            "deviation": figure.deviation,
            "command": figure.command,
            "columns": list(figure.columns),
            "rows": [list(row) for row in figure.rows],
        }
        for paper in papers
        for figure in paper.figures
    ]
    return json.dumps({"version": wakeai.__version__, "repeat": repeat, "figures": figures}, indent=1) + "\n"
