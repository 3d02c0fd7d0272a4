"""A figure or table of a paper beside ours."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

Cell = str | float | int | None


@dataclass(frozen=True)
class Figure:
    """One figure or table of a paper, or several that show the same runs, and ours."""

    name: str
    """The number in the paper, such as "table 3, figures 4 and 5"."""
    shows: str
    """What it shows, as a heading."""
    paper: str
    """What the paper has: its numbers, or its statement where there is only a picture."""
    ours: str
    """What our runs give, with numbers."""
    agrees: bool
    """Whether our runs confirm the paper's statement, by the rule in `paper` and `ours`."""
    deviation: str
    """What differs and, where it is known, why."""
    command: str
    """The command that makes the runs."""
    columns: Sequence[str] = ()
    """The heads of the columns of the table, which has the paper's numbers and ours."""
    rows: Sequence[Sequence[Cell]] = field(default_factory=list)
    drawing: Drawing | None = None

    def picture(self) -> str | None:
        """The drawing as SVG in a data URL."""
        if self.drawing is None:
            return None
        text = io.BytesIO()
        self.drawing.savefig(text, format="svg", metadata={"Date": None})
        return "data:image/svg+xml;base64," + base64.b64encode(text.getvalue()).decode()


@dataclass(frozen=True)
class Paper:
    """A paper with its figures."""

    short: str
    """How the project's pages name it."""
    title: str
    figures: Sequence[Figure]
    not_made: str
    """The figures that simulator and lab cannot make, and why."""


def text_of(cell: Cell) -> str:
    """A cell as the tables show it: three digits after the point below 10, one from there on."""
    match cell:
        case None:
            return "–"
        case float():
            return f"{cell:.3f}" if abs(cell) < 10 else f"{cell:.1f}"
        case _:
            return str(cell)
