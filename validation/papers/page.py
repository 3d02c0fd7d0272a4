"""The figures of all papers: one HTML file, the same as JSON, and the guide in Markdown."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import jinja2
import wakeai

from figure import Cell, Paper, text_of

HERE = Path(__file__).parent


def html(papers: Sequence[Paper], repeat: int) -> str:
    """The page. All text is escaped; it loads nothing and runs no script."""
    return rendered("page.html", papers, repeat, escapes=True)


def markdown(papers: Sequence[Paper], repeat: int) -> str:
    """The guide docs/guides/papers.md.."""
    return rendered("guide.md", papers, repeat, escapes=False)


def rendered(template: str, papers: Sequence[Paper], repeat: int, *, escapes: bool) -> str:
    """The template with the figures of the papers."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=escapes,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["cell"] = text_of
    environment.filters["line"] = line
    figures = [figure for paper in papers for figure in paper.figures]
    bounds = [bound for paper in papers for bound in paper.bounds]
    return environment.get_template(template).render(
        papers=papers,
        figures=figures,
        agreeing=sum(figure.agrees for figure in figures),
        bounds_of=bounds,
        kept=sum(bound.holds for bound in bounds),
        repeat=repeat,
        version=wakeai.__version__,
    )


def line(cells: Sequence[Cell]) -> str:
    """The line of a table in Markdown."""
    return "| " + " | ".join(text_of(cell).replace("|", "\\|") for cell in cells) + " |"


def machine_readable(papers: Sequence[Paper], repeat: int) -> str:
    """The figures without their drawings, the bounds and what goes beyond the papers, as JSON."""
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
            "more": [dataclasses.asdict(table) for table in figure.more],
            "bounds": [dataclasses.asdict(bound) for bound in figure.bounds],
        }
        for paper in papers
        for figure in paper.figures
    ]
    further = [{"paper": paper.short, **dataclasses.asdict(part)} for paper in papers for part in paper.further]
    made = {"version": wakeai.__version__, "repeat": repeat, "figures": figures, "further": further}
    return json.dumps(made, indent=1) + "\n"
