"""Figures of results, with matplotlib: one function for each.

Every function takes a `Result` (or a `Grid`), draws into `axes` or into new ones, and returns these, so that a figure can be
changed and saved as usual: `wakeai.plots.goodput(result).figure.savefig("goodput.pdf")`.

The package's extra `plots` installs matplotlib: `pip install "wakeai[plots]"`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import polars as pl

from . import _native
from ._result import Result, Tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe's and Ito's colours, which people with any colour vision tell apart; yellow is left out for its contrast."""
STYLES = ("-", "--", ":", "-.")
"""Lines of one colour differ in their style."""


def goodput(
    result: Tables,
    condition: str | None = None,
    repeat: int = 0,
    *,
    step_s: float = 1.0,
    stations: Sequence[str] | None = None,
    axes: Axes | None = None,
) -> Axes:
    """The goodput of each station over time, Mbit/s, in means over `step_s` seconds. Needs records."""
    axes = axes or _new()
    rows = _run(result, "goodput", condition, repeat, stations)
    rows = rows.with_columns((_seconds() / step_s).ceil() * step_s)
    sums = rows.group_by("station", "at_s", maintain_order=True).agg(
        pl.sum("bytes"), pl.min("flow")
    )
    for (station,), line in _by(sums.sort("flow", "at_s"), "station"):
        axes.plot(line["at_s"], line["bytes"] * 8e-6 / step_s, label=station, **_next(axes))
    return _finish(axes, "time, s", "goodput, Mbit/s", "station", bottom=0)


def rtt(
    result: Tables,
    condition: str | None = None,
    repeat: int = 0,
    *,
    stations: Sequence[str] | None = None,
    axes: Axes | None = None,
) -> Axes:
    """The samples of the round-trip time of each station's senders over time, ms. Needs records."""
    axes = axes or _new()
    rows = _run(result, "samples", condition, repeat, stations).drop_nulls("rtt_us")
    for (station,), line in _by(rows.with_columns(_seconds()).sort("flow", "at_s"), "station"):
        axes.plot(line["at_s"], line["rtt_us"] / 1e3, label=station, linewidth=0.8, **_next(axes))
    return _finish(axes, "time, s", "round-trip time, ms", "station", bottom=0)


def rtt_cdf(result: Tables, *, from_s: float = 0.0, axes: Axes | None = None) -> Axes:
    """The distribution of the samples of the round-trip time, ms, by condition; without those before `from_s`.

    Needs records. Give the scenario's warmup as `from_s` to see what the percentiles of the table come from.
    """
    axes = axes or _new()
    rows = result.to_polars("samples").with_columns(_seconds())
    rows = rows.filter(pl.col("at_s") >= from_s).drop_nulls("rtt_us")
    for (condition,), line in _by(rows, "condition"):
        _cdf(axes, line["rtt_us"] / 1e3, len(line), condition)
    return _finish(axes, "round-trip time, ms", "share of the samples", "condition", bottom=0)


def completion_cdf(result: Tables, *, axes: Axes | None = None) -> Axes:
    """The distribution of the flows' completions, s, by condition.

    If some flows did not complete, the distribution ends below 1.
    """
    axes = axes or _new()
    for (condition,), line in _by(result.to_polars("flows"), "condition"):
        _cdf(axes, line["completion_s"].drop_nulls(), len(line), condition)
    axes.set_ylim(top=1.02)
    return _finish(axes, "completion, s", "share of the flows", "condition", bottom=0)


def cwnd(
    result: Tables,
    station: str,
    condition: str | None = None,
    repeat: int = 0,
    *,
    axes: Axes | None = None,
) -> Axes:
    """The congestion windows of a station's connections over time, segments, with the slow-start threshold. Needs records."""
    axes = axes or _new()
    rows = _run(result, "samples", condition, repeat, [station]).with_columns(_seconds()).sort("at_s")
    for (flow, connection), line in _by(rows, "flow", "connection"):
        style = _next(axes)
        name = f"flow {flow}, connection {connection}"
        axes.plot(line["at_s"], line["cwnd"], label=name, **style)
        thresholds = line.drop_nulls("ssthresh")
        if len(thresholds):
            style["linestyle"] = ":"
            label = "slow-start threshold" if flow == rows["flow"][0] and connection == rows["connection"][0] else None
            axes.plot(thresholds["at_s"], thresholds["ssthresh"], alpha=0.6, label=label, **style)
    return _finish(axes, "time, s", "congestion window, segments", station, bottom=0)


def bounds(recording: Tables, cookie: int, *, axes: Axes | None = None) -> Axes:
    """The congestion window of a connection that `wakeai top --record` saw, with the bounds of its agent, segments."""
    axes = axes or _new()
    rows = recording.to_polars("connections").filter(pl.col("cookie") == cookie)
    if rows.is_empty():
        raise ValueError(f"the recording has no connection with the cookie {cookie}")
    rows = rows.with_columns(_seconds()).sort("at_s")
    axes.plot(rows["at_s"], rows["cwnd"], label="window", **_next(axes))
    for name in ("floor", "ceiling"):
        if rows[name].null_count() < len(rows):
            axes.step(rows["at_s"], rows[name], label=name, where="post", **_next(axes))
    return _finish(axes, "time, s", "segments", f"connection {cookie}", bottom=0)


def shares(result: Tables, *, axes: Axes | None = None) -> Axes:
    """The goodput of each station in each condition, Mbit/s: the mean over the repeats."""
    axes = axes or _new()
    rows = result.to_polars("stations")
    sums = rows.group_by("condition", "repeat", "station", maintain_order=True).agg(pl.sum("goodput_mbps"))
    names = sums["station"].unique(maintain_order=True).to_list()
    conditions = sums["condition"].unique(maintain_order=True).to_list()
    width = 0.8 / max(1, len(conditions))
    for index, (condition, colour) in enumerate(zip(conditions, cycle(COLOURS))):
        of = {
            station: _interval(line["goodput_mbps"])[0]
            for (station,), line in _by(sums.filter(pl.col("condition") == condition), "station")
        }
        places = [at + (index - (len(conditions) - 1) / 2) * width for at in range(len(names))]
        axes.bar(places, [of.get(name, 0.0) for name in names], width, label=condition, color=colour)
    axes.set_xticks(range(len(names)), names, rotation=90 if len(names) > 8 else 0)
    return _finish(axes, "station", "goodput, Mbit/s", "condition", bottom=0, outside=True)


def over(
    grid: Tables,
    key: str,
    figure: str = "jain",
    *,
    label: str | None = None,
    axes: Axes | None = None,
) -> Axes:
    """A column of the table `runs` over a key of a grid, by condition: means with their 95 % confidence intervals.

    `over(grid, "stations.tablet.count")` is Jain's index over the number of stations. A mean is over all cells with the
    same value of the key.
    """
    axes = axes or _new()
    rows = grid.to_polars("runs")
    if key not in rows.columns or figure not in rows.columns:
        raise ValueError(f"the runs have no column {key if key not in rows.columns else figure!r}: {rows.columns}")
    for (condition,), line in _by(rows.drop_nulls(figure).sort(key), "condition"):
        cells = [(value, *_interval(cell[figure])) for (value,), cell in _by(line, key)]
        values, means, halves = zip(*cells)
        errors = [half or 0.0 for half in halves]
        axes.errorbar(values, means, errors, label=condition, capsize=2, **_next(axes))
    return _finish(axes, label or key, _title(figure), "condition")


def comparison(
    result: Result,
    figures: Sequence[str] = ("total_goodput_mbps", "jain", "rtt_ms.p95"),
    *,
    axes: Sequence[Axes] | None = None,
) -> Sequence[Axes]:
    """The conditions of a result beside each other: a plot for each figure, means with their 95 % confidence intervals.

    The figures are those of the report's `aggregates`.
    """
    from matplotlib import pyplot

    if axes is None:
        axes = list(pyplot.subplots(1, len(figures), squeeze=False, layout="constrained", figsize=(3 * len(figures), 3))[1][0])
    aggregates = result.report["aggregates"]
    for place, figure in zip(axes, figures):
        known = [one for one in aggregates if one["figures"].get(figure) is not None]
        for index, (one, colour) in enumerate(zip(known, cycle(COLOURS))):
            found = one["figures"][figure]
            place.bar(index, found["mean"], 0.6, yerr=found["half"] or 0.0, capsize=4, color=colour)
        place.set_xticks(range(len(known)), [one["condition"] for one in known], rotation=30, ha="right")
        _finish(place, "", _title(figure), None, bottom=0)
    return axes


def airtime(
    result: Tables, condition: str | None = None, repeat: int = 0, *, axes: Axes | None = None
) -> Axes:
    """What the air was used for over time, shares of each second, collisions and idle time included. Needs records."""
    axes = axes or _new()
    rows = _run(result, "airtime", condition, repeat).filter(pl.col("of") == "all").with_columns(_seconds())
    table = rows.pivot("kind", index="at_s", values="air_ns", aggregate_function="sum").sort("at_s").fill_null(0)
    kinds = [kind for kind in KINDS if kind in table.columns]
    whole = table.select(pl.sum_horizontal(kinds)).to_series()
    shares = [table[kind] / whole for kind in kinds]
    axes.stackplot(table["at_s"], shares, labels=kinds, colors=[KINDS[kind] for kind in kinds])
    axes.set_ylim(0, 1)
    return _finish(axes, "time, s", "share of the air", "use", outside=True)


KINDS = {
    "data": "#0072B2",
    "tcp_ack": "#56B4E9",
    "presence": "#009E73",
    "mac_ack": "#E69F00",
    "protection": "#CC79A7",
    "collision": "#D55E00",
    "idle": "#DDDDDD",
}
"""The uses of the air, with their colours."""


def _new() -> Axes:
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]


def _run(
    result: Tables,
    table: str,
    condition: str | None,
    repeat: int,
    stations: Sequence[str] | None = None,
) -> pl.DataFrame:
    """The rows of one run. Without a condition it is a run of the first one."""
    rows = result.to_polars(table)
    conditions = rows["condition"].unique(maintain_order=True).to_list()
    chosen = condition or next(iter(conditions), None)
    rows = rows.filter((pl.col("condition") == chosen) & (pl.col("repeat") == repeat))
    if rows.is_empty():
        raise ValueError(f"no rows of condition {chosen!r}, repeat {repeat}; there are {conditions}")
    if stations is None:
        return rows
    unknown = set(stations) - set(rows["station"].unique())
    if unknown:
        raise ValueError(f"no rows of {sorted(unknown)}; there are {sorted(rows['station'].unique())}")
    return rows.filter(pl.col("station").is_in(list(stations)))


def _seconds() -> pl.Expr:
    return (pl.col("at_ns") / 1e9).alias("at_s")


def _by(rows: pl.DataFrame, *keys: str) -> Any:
    return rows.group_by(*keys, maintain_order=True)


def _interval(values: pl.Series) -> tuple[float, float | None]:
    found = _native.interval(values.to_list())
    return found if found is not None else (0.0, None)


def _cdf(axes: Axes, values: pl.Series, count: int, label: str) -> None:
    ordered = values.sort()
    shares = [(at + 1) / count for at in range(len(ordered))]
    axes.step([*ordered[:1], *ordered], [0.0, *shares] if len(ordered) else [], where="post", label=label, **_next(axes))


def _next(axes: Axes) -> dict[str, Any]:
    """The colour and the style of the next line."""
    count = len(axes.get_legend_handles_labels()[0])
    return {"color": COLOURS[count % len(COLOURS)], "linestyle": STYLES[count // len(COLOURS) % len(STYLES)]}


def _title(figure: str) -> str:
    """The name of a figure with its unit, from the end of the column's name."""
    titles = {"jain": "Jain's index", "total_goodput_mbps": "aggregate goodput, Mbit/s"}
    titles |= {name: f"RTT {name[-3:]}, ms" for name in ("rtt_ms.p50", "rtt_ms.p95", "rtt_ms.p99")}
    titles |= {name.replace(".", "_"): title for name, title in titles.items()}
    if figure in titles:
        return titles[figure]
    for end, unit in (("_mbps", "Mbit/s"), ("_ms", "ms"), ("_s", "s")):
        name, _, part = figure.replace(".", "_").rpartition(end)
        if name and (part == "" or part.startswith("_")):
            return f"{name.replace('_', ' ')}{part.replace('_', ' ')}, {unit}"
    return figure.replace("_", " ")


def _finish(
    axes: Axes,
    x: str,
    y: str,
    legend: str | None,
    bottom: float | None = None,
    outside: bool = False,
) -> Axes:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    if bottom is not None:
        axes.set_ylim(bottom=bottom)
    labelled = axes.get_legend_handles_labels()[0]
    if legend is not None and 0 < len(labelled):
        # Beside the axes, the legend hides nothing. Its order is that of the stacked areas.
        place: dict[str, Any] = {}
        if outside:
            place = {"loc": "upper left", "bbox_to_anchor": (1, 1), "reverse": True}
        axes.legend(title=legend, fontsize="small", ncols=1 + len(labelled) // 12, **place)
    return axes
