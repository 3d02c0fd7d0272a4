"""A figure or table of a paper beside ours, and what goes beyond the papers."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

Cell = str | float | int | None


@dataclass(frozen=True)
class Table:
    """A table of figures."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""


@dataclass(frozen=True)
class Bound:
    """A bound on our figures, and whether they keep it."""

    what: str
    """The figure."""
    bound: str
    """The bound in words."""
    value: str
    """The value of the figure in words."""
    holds: bool


def at_least(what: str, bound: float, value: float) -> Bound:
    """The bound that a figure is not below `bound`."""
    return Bound(what, f"{bound} or more", f"{value:.3f}", value >= bound)


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
    file: str | None = None
    """The name of the drawing in docs/guides/plots, where the guide shows it."""
    more: Sequence[Table] = ()
    """Further tables."""
    bounds: Sequence[Bound] = ()
    """Bounds of ours on the same runs, which are stricter than the paper's statement, or about other figures."""

    @property
    def tables(self) -> list[Table]:
        """The table, if there is one, and the further ones."""
        return [*([Table(self.columns, self.rows)] if self.rows else []), *self.more]

    def store(self, directory: Path) -> None:
        """Writes the drawing into a file if the guide shows it."""
        if self.drawing is not None and self.file is not None:
            self.drawing.savefig(directory / self.file, dpi=90, metadata={"Software": None})

    def picture(self) -> str | None:
        """The drawing as SVG in a data URL."""
        if self.drawing is None:
            return None
        text = io.BytesIO()
        self.drawing.savefig(text, format="svg", metadata={"Date": None})
        return "data:image/svg+xml;base64," + base64.b64encode(text.getvalue()).decode()


@dataclass(frozen=True)
class Further:
    """Runs that go beyond a paper: other values, other algorithms, the law `airtime`, the lab."""

    shows: str
    """What they show, as a heading."""
    says: str
    """The set-up, and what follows from the runs."""
    tables: Sequence[Table]
    commands: Sequence[str]
    bounds: Sequence[Bound] = ()


@dataclass(frozen=True)
class Paper:
    """A paper with its figures."""

    short: str
    """How the project's pages name it."""
    title: str
    figures: Sequence[Figure]
    not_made: str
    """The figures that simulator and lab cannot make, and why."""
    further: Sequence[Further] = ()

    @property
    def bounds(self) -> list[Bound]:
        """All bounds on the runs of this paper."""
        parts: list[Figure | Further] = [*self.figures, *self.further]
        return [bound for part in parts for bound in part.bounds]


def text_of(cell: Cell) -> str:
    """A cell as the tables show it: three digits after the point below 10, one from there on, none from 1000 on."""
    match cell:
        case None:
            return "–"
        case float():
            decimals = 3 if abs(cell) < 10 else 1 if abs(cell) < 1000 else 0
            return f"{cell:.{decimals}f}"
        case _:
            return str(cell)
