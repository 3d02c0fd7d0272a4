"""Drawings that several papers share. The rest is `wakeai.plots`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from matplotlib import pyplot
from wakeai.plots import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

MARKERS = "osD^vP*X"


def panels(columns: int, rows: int = 1, *, sharey: bool = False) -> tuple[Drawing, list[Axes]]:
    """A drawing with rows and columns of axes. The axes are returned row by row."""
    size = (min(10.0, 4.6 * columns), 2.9 * rows)
    drawing, axes = pyplot.subplots(
        rows, columns, squeeze=False, layout="constrained", figsize=size, sharey=sharey
    )
    return drawing, [one for row in axes for one in row]


def finish(axes: Axes, title: str, x: str, y: str, *, legend: bool = True, bottom: float | None = 0) -> None:
    """Adds titles, a grid and a legend to the axes."""
    axes.set_title(title, fontsize="medium")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    if bottom is not None:
        axes.set_ylim(bottom=bottom)
    if legend and axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize="small")


def bars(axes: Axes, groups: Mapping[str, Mapping[str, float]]) -> None:
    """Grouped bars: at each place on the axis, one bar of each group."""
    places = list(next(iter(groups.values())))
    width = 0.8 / len(groups)
    for index, (name, values) in enumerate(groups.items()):
        at = [place + (index - (len(groups) - 1) / 2) * width for place in range(len(places))]
        axes.bar(at, [values[place] for place in places], width, label=name, color=COLOURS[index % len(COLOURS)])
    axes.set_xticks(range(len(places)), places)


def scatter(axes: Axes, groups: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> None:
    """Points of several groups, each with a colour and a marker of its own."""
    for index, (name, (x, y)) in enumerate(groups.items()):
        look: dict[str, Any] = {"color": COLOURS[index % len(COLOURS)], "marker": MARKERS[index % len(MARKERS)]}
        axes.scatter(x, y, label=name, alpha=0.8, **look)


def lines(axes: Axes, x: Sequence[float], groups: Mapping[str, Sequence[float]]) -> None:
    """Lines with markers over a common axis."""
    for index, (name, values) in enumerate(groups.items()):
        axes.plot(x, values, label=name, color=COLOURS[index % len(COLOURS)], marker=MARKERS[index % len(MARKERS)])
