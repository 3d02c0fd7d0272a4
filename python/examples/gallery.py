"""Draws each figure of wakeai.plots once: python gallery.py DIRECTORY"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import wakeai
from matplotlib import pyplot
from wakeai import plots

SCENARIOS = Path(__file__).parents[2] / "scenarios"


def main(directory: Path) -> None:
    pyplot.rcParams.update({"figure.figsize": (5.5, 3.2), "savefig.dpi": 90, "font.size": 9})
    quick = wakeai.run(
        SCENARIOS / "quickstart.toml", conditions=["default", "airtime"], repeat=5, records=True
    )
    turns = wakeai.run(SCENARIOS / "turns-upload.toml", conditions=["default", "airtime-35", "turns-35"])
    stations: dict[str, list[object]] = {"stations.tablet.count": [1, 2, 4, 8, 16], "duration": ["30s"]}
    grid = wakeai.grid(
        SCENARIOS / "quickstart.toml", stations, conditions=["default", "airtime"], repeat=5, progress=False
    )
    figures = {
        "goodput": plots.goodput(quick, "airtime"),
        "rtt": plots.rtt(quick, "default", stations=["tablet1", "tablet2"]),
        "rtt-cdf": plots.rtt_cdf(quick, from_s=5),
        "completion-cdf": plots.completion_cdf(turns),
        "cwnd": plots.cwnd(quick, "tablet1", "default"),
        "shares": plots.shares(quick),
        "over": plots.over(grid, "stations.tablet.count", label="stations"),
        "comparison": plots.comparison(quick)[0],
        "airtime": plots.airtime(quick, "default"),
    }
    directory.mkdir(parents=True, exist_ok=True)
    for name, axes in figures.items():
        figure = axes.get_figure(root=True)
        assert figure is not None
        figure.savefig(directory / f"{name}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
