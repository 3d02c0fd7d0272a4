"""Draws the frontiers that `wakeai-validation frontier --write DIRECTORY` wrote: python validation/frontier.py DIRECTORY

Each setting of `frontier.json` there gives a picture, `NAME.svg`: goodput over queueing delay, with a line through the
fixed windows and a mark for the law and each other condition. `scripts/python-env` makes an environment for it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams.update({"font.size": 9, "svg.hashsalt": "wakeai", "svg.fonttype": "none"})

from matplotlib import pyplot
from wakeai.plots import COLOURS

LEAST_MS = 0.1
"""Shorter delays are drawn at this one, because the axis is logarithmic."""


def draw(setting: Mapping[str, Any], to: Path) -> None:
    """Draws one setting."""
    drawing, axes = pyplot.subplots(figsize=(9.5, 4), layout="constrained")
    windows = [(window["label"], place(window["point"])) for window in setting["windows"]]
    axes.plot(*zip(*(at for _, at in windows), strict=True), color="#888", marker="o", markersize=3, gid="windows")
    for label, at in windows:
        axes.annotate(label, at, xytext=(2, 2), textcoords="offset points", fontsize=6, color="#888")
    marks = {"law": setting["law"], **setting["others"]}
    for index, (name, point) in enumerate(marks.items()):
        colour = COLOURS[index % len(COLOURS)]
        axes.plot(*place(point), color=colour, marker="o", gid=f"mark {name}")
        axes.annotate(name, place(point), xytext=(5, 4), textcoords="offset points", color=colour)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.set_title(f"{setting['setting']}: fixed windows (segments), the law and others")
    axes.set_xlabel("queueing delay, 95th percentile, ms")
    axes.set_ylabel("Mbit/s")
    drawing.savefig(to, metadata={"Date": None})
    pyplot.close(drawing)


def place(point: Mapping[str, float]) -> tuple[float, float]:
    """The place of a point in the drawing."""
    return max(point["p95_ms"], LEAST_MS), point["goodput"]


def main() -> int:
    """Runs the command."""
    arguments = argparse.ArgumentParser(prog="frontier.py", description="Draws what `frontier --write` wrote.")
    arguments.add_argument("directory", type=Path, help="the directory of --write")
    directory: Path = arguments.parse_args().directory
    try:
        report = json.loads((directory / "frontier.json").read_text(encoding="utf-8"))
        for setting in report["settings"]:
            draw(setting, directory / f"{setting['setting']}.svg")
    except (OSError, ValueError) as error:
        print(f"frontier.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
