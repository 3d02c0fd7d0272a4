"""Each figure draws what the tables have, with units on its axes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib
import pytest
import wakeai

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.axes import Axes
from wakeai import plots

from .conftest import ROOT, python

GUIDE = (ROOT / "docs/guides/plots.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def result() -> wakeai.Result:
    """Two stations with 3 MB each, under two conditions, twice."""
    scenario = wakeai.Scenario(
        name="small",
        duration="4s",
        access_point={"standard": "802.11n"},
        stations=[{"name": "phone", "count": 2}],
        flows=[{"from": "phone", "to": "server", "size": "3MB"}],
        conditions=[{"name": "default"}, {"name": "airtime", "law": "airtime"}],
    )
    return wakeai.run(scenario, repeat=2, records=True)


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    pyplot.close("all")


def ys(line: Any) -> list[float]:
    return [float(y) for y in line.get_ydata()]


def heights(axes: Any) -> list[float]:
    return [float(patch.get_height()) for patch in axes.patches]


def labels(axes: Axes) -> list[str]:
    return list(axes.get_legend_handles_labels()[1])


def test_goodput_over_time_adds_up_to_what_arrived(result: wakeai.Result) -> None:
    axes = plots.goodput(result, "airtime", 1, step_s=0.5)
    flows = result.to_polars("flows").filter(condition="airtime", repeat=1)
    assert labels(axes) == ["phone1", "phone2"]
    for line, flow in zip(axes.lines, flows.iter_rows(named=True)):
        drawn = sum(ys(line)) * 0.5 / 8e-6
        assert drawn == pytest.approx(flow["bytes"])
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("time, s", "goodput, Mbit/s")


def test_round_trip_times_and_windows_are_those_of_the_samples(result: wakeai.Result) -> None:
    samples = result.to_polars("samples").filter(condition="default", repeat=0, station="phone1")
    axes = plots.rtt(result, stations=["phone1"])
    assert max(ys(axes.lines[0])) == pytest.approx(max(samples["rtt_us"].drop_nulls().to_list()) / 1e3)
    assert axes.get_ylabel() == "round-trip time, ms"
    axes = plots.cwnd(result, "phone1")
    assert max(ys(axes.lines[0])) == samples["cwnd"].max()
    assert "segments" in axes.get_ylabel()


def test_distributions_end_at_the_share_that_has_a_value(result: wakeai.Result) -> None:
    axes = plots.rtt_cdf(result, from_s=0.5)
    assert labels(axes) == ["default", "airtime"]
    assert [ys(line)[-1] for line in axes.lines] == [1.0, 1.0]
    axes = plots.completion_cdf(result)
    complete = result.to_polars("flows").filter(condition="default")["completion_s"]
    assert ys(axes.lines[0])[-1] == pytest.approx(1 - complete.null_count() / len(complete))


def test_shares_over_and_comparison_draw_the_figures_of_the_report(result: wakeai.Result) -> None:
    axes = plots.shares(result)
    assert len(axes.patches) == 4 and axes.get_ylabel() == "goodput, Mbit/s"
    grid = wakeai.grid(
        {
            "name": "small",
            "duration": "2s",
            "access_point": {"standard": "802.11n"},
            "stations": [{"name": "phone"}],
            "flows": [{"from": "phone", "to": "server"}],
            "conditions": [{"name": "default"}],
        },
        {"stations.phone.count": [1, 3]},
        repeat=3,
        progress=False,
    )
    axes = plots.over(grid, "stations.phone.count", "total_goodput_mbps")
    runs = grid.to_polars("runs").filter(**{"stations.phone.count": 3})["total_goodput_mbps"]
    assert ys(axes.lines[0])[1] == pytest.approx(runs.mean())
    assert axes.get_ylabel() == "aggregate goodput, Mbit/s"
    first, *_ = plots.comparison(result)
    means = [one["figures"]["total_goodput_mbps"]["mean"] for one in result.report["aggregates"]]
    assert heights(first) == pytest.approx(means)


def test_the_air_is_used_up(result: wakeai.Result) -> None:
    axes = plots.airtime(result, "default")
    assert {"data", "idle"} <= set(labels(axes)) <= set(plots.KINDS)
    assert axes.get_ylim() == (0, 1)


def test_what_is_not_there_is_named(result: wakeai.Result) -> None:
    with pytest.raises(ValueError, match="nobody"):
        plots.goodput(result, "nobody")
    with pytest.raises(ValueError, match="phone9"):
        plots.rtt(result, stations=["phone9"])
    with pytest.raises(KeyError, match="samples"):
        plots.cwnd(wakeai.Result({}, None), "phone1")


def test_lines_of_one_colour_differ_in_their_style(result: wakeai.Result) -> None:
    axes = pyplot.subplots()[1]
    seen = set()
    for number in range(2 * len(plots.COLOURS)):
        style = plots._next(axes)
        seen.add((style["color"], style["linestyle"]))
        axes.plot([0, 1], label=str(number), **style)
    assert len(seen) == 2 * len(plots.COLOURS)


@pytest.mark.release
def test_the_gallery_has_each_picture_of_the_guide(tmp_path: Path) -> None:
    done = python("python/examples/gallery.py", str(tmp_path))
    assert done.returncode == 0, done.stderr
    shown = re.findall(r"\]\(plots/([a-z-]+\.png)\)", GUIDE)
    assert sorted(shown) == sorted(path.name for path in tmp_path.iterdir())
    for name in shown:
        assert (ROOT / "docs/guides/plots" / name).is_file()
