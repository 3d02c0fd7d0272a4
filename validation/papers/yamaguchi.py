"""Yamaguchi et al.: 10 to 40 stations on 802.11g transfer 10 MB each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl
import wakeai
from wakeai import plots
from wakeai.plots import COLOURS

import draw
from figure import Bound, Cell, Figure, Further, Paper, Table
from runs import TRIED, average, by_run, change, command, flows, has_lab, lab_runs, mean, number, rows_of, simulate

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

COUNTS = (10, 20, 30, 40)
DOWN, UP = "scenarios/dense-download.toml", "scenarios/dense-upload.toml"
SPLIT, SINGLE = "scenarios/split-upload.toml", "validation/scenarios/ns3-single.toml"
# Least, largest and mean transfer time, and the ideal, seconds: tables 3 and 4.
TABLE_3 = {10: (33, 42, 39, 37), 20: (78, 89, 85, 74), 30: (117, 126, 124, 111), 40: (154, 167, 163, 148)}
TABLE_4 = {10: (33, 41, 36, 40), 20: (39, 127, 63, 79), 30: (73, 209, 110, 119), 40: (88, 269, 157, 158)}
TURNS, LAB_TURNS = "scenarios/turns-upload.toml", "validation/scenarios/lab-turns.toml"
PIECES = (1, 2, 10, 20, 40, 80)
BUFFERS = (50, 100, 200, 300, 500, 1000)
ALONE: dict[str, str | float] = {"stations.tablet.queue": 1000, "warmup": "0s", "duration": "30s"}
# The values that come closest to table 2; our scenarios have them.
PROTECTION, RATE = "cts-to-self", 54
FITTED: dict[str, str | float] = ALONE | {"access_point.protection": PROTECTION, "stations.tablet.rate": f"{RATE}Mbit/s"}
PEAK_S, NEAR_S = 160, 20
"""The peak of the paper's figure 13, and the distance from it that counts as near."""


def paper(repeat: int) -> Paper:
    """Makes the runs and the figures."""
    down = simulate(DOWN, [f"stations-{count}" for count in COUNTS], repeat=repeat)
    up = simulate(UP, [f"stations-{count}" for count in COUNTS], repeat=repeat)
    down_recorded = simulate(DOWN, ["stations-40"], repeat=1, records=True)
    up_recorded = simulate(UP, ["stations-40"], repeat=1, records=True)
    pieces = ["whole" if count == 1 else f"chunks-{count}" for count in PIECES]
    ours = ["auto", "airtime", *(f"airtime-{count}" for count in PIECES[1:]), "airtime-auto", "turns"]
    uploads = simulate(SPLIT, [*pieces, *ours], repeat=repeat)
    return Paper(
        short="Yamaguchi et al.",
        title="Evaluation of TCP Performance in a Wireless LAN network with Dense Terminals",
        figures=[
            alone(repeat),
            transfers(down, repeat, DOWN, TABLE_3, "table 3, figures 4 and 5", "Download"),
            transfers(up, repeat, UP, TABLE_4, "table 4, figures 6 and 7", "Upload"),
            rates(down_recorded, DOWN, "figure 8", "download"),
            rates(up_recorded, UP, "figure 9", "upload"),
            first_and_last(up_recorded),
            split(uploads, dict(zip(PIECES, pieces, strict=True)), repeat),
        ],
        not_made="Figures 1 to 3 and table 1 show CSMA/CA, slow start, the set-up and the devices.",
        further=[buffers(repeat), turns(uploads, [*pieces, *ours], repeat)],
    )


def alone(repeat: int) -> Figure:
    """Table 2."""
    result = simulate(SINGLE, ["down", "up"], repeat=repeat, keys=FITTED, solos=False)
    stated = {"down": 21.6, "up": 20.7}
    found = {condition: mean(result, condition, "total_goodput_mbps") for condition in stated}
    off = {condition: found[condition] / stated[condition] - 1 for condition in stated}
    rows: list[list[Cell]] = []
    deviations = {}
    for protection in ("none", "cts-to-self", "rts-cts"):
        for rate in (36, 48, 54):
            keys = ALONE | {"access_point.protection": protection, "stations.tablet.rate": f"{rate}Mbit/s"}
            one = simulate(SINGLE, ["down", "up"], repeat=1, keys=keys, solos=False)
            mbps = {condition: mean(one, condition, "total_goodput_mbps") for condition in stated}
            deviations[protection, rate] = sum(abs(mbps[condition] / stated[condition] - 1) for condition in stated)
            rows.append([protection, rate])
            for condition in stated:
                rows[-1] += [mbps[condition], change(mbps[condition], stated[condition])]
    closest = min(deviations, key=lambda of: deviations[of])
    return Figure(
        name="table 2",
        shows="Goodput of one station alone, Mbit/s",
        paper="21.6 down, 20.7 up.",
        ours=f"{found['down']:.1f} down, {found['up']:.1f} up (rule: within 5 %).",
        agrees=all(abs(one) < 0.05 for one in off.values()),
        deviation="The paper names neither PHY rate nor protection. Our scenarios have "
        f"{PROTECTION} at {RATE} Mbit/s; the least sum of deviations in the second table has {closest[0]} at {closest[1]} Mbit/s. "
        "No other value was fitted to the paper.",
        command="wakeai sim " + " ".join([SINGLE, *(f"--set {key}={value}" for key, value in FITTED.items())]),
        columns=["direction", "paper", "ours", "deviation"],
        rows=[[direction, stated[direction], found[direction], f"{off[direction]:+.1%}"] for direction in stated],
        more=[
            Table(
                ["protection", "rate, Mbit/s", "down, Mbit/s", "deviation", "up, Mbit/s", "deviation"],
                rows,
                "Other protections and rates, seed 1",
            )
        ],
    )


def transfers(
    result: wakeai.Result,
    repeat: int,
    scenario: str,
    stated: dict[int, tuple[int, int, int, int]],
    name: str,
    title: str,
) -> Figure:
    """Table 3 or 4, with its figures."""
    rows: list[list[Cell]] = []
    spreads, off = [], []
    drawing, (left, right) = draw.panels(2)
    for index, count in enumerate(COUNTS):
        least, most, middle = times(result, f"stations-{count}")
        paper_least, paper_most, paper_middle, ideal = stated[count]
        spreads.append((most - least, paper_most - paper_least))
        off.append(middle / paper_middle - 1)
        row: list[Cell] = [count, least, paper_least, most, paper_most, middle, paper_middle, f"{off[-1]:+.1%}", ideal]
        rows.append(row + waits(result, f"stations-{count}"))
        one = flows(result, f"stations-{count}").filter(pl.col("repeat") == 0)["completion_s"].drop_nulls()
        left.scatter([count] * len(one), one, s=8, color=COLOURS[0])
        right.hist(one, bins=range(0, 300, 10), label=f"{count} stations", histtype="step", color=COLOURS[index])
    left.plot(COUNTS, [stated[count][3] for count in COUNTS], "--", color=COLOURS[1], label="ideal of the paper")
    draw.finish(left, f"{title}, seed 1", "stations", "transfer time, s")
    draw.finish(right, "distribution, seed 1", "transfer time, s", "stations")
    worst = max(off, key=abs)
    if title == "Download":
        agrees = all(abs(one) < 0.15 for one in off)
        rule = "means within 15 %"
        deviation = "The means are shorter, because nothing but TCP uses the air of our runs."
    else:
        ours_spread = [one for one, _ in spreads]
        agrees = ours_spread == sorted(ours_spread) and all(abs(one) < 0.15 for one in off)
        rule = "the spread grows with the stations, means within 15 %"
        deviation = (
            "The shape is the paper's: fair with 10 stations, and a spread that grows with their number. With many, our "
            "first stations end earlier, which lowers the mean: a few connections with large windows advance by cumulative "
            "ACKs while the access point drops most ACKs. ns-3 gives the same. The paper does not give the access point's "
            "buffer, the drivers' queues, the socket buffers that Linux 3.2 grew to, nor the rate "
            "adaptation, which takes collisions for a bad link and lengthens every transmission. The second table has what was tried. An access point of 1,000 packets "
            "and 10 % of damaged frames would agree, but then one station alone has less than in table 2."
        )
    return Figure(
        name=name,
        shows=f"{title} of 10 MB by 10 to 40 stations: transfer times, s",
        paper="The numbers of the table.",
        ours=f"Means deviate by {worst:+.0%} at the most (rule: {rule}).",
        agrees=agrees,
        deviation=deviation,
        command=command(scenario, "stations-40", repeat=repeat),
        columns=["stations", "least", "paper", "most", "paper", "mean", "paper", "deviation", "ideal (paper)", *WAITS],
        rows=rows,
        drawing=drawing,
        more=[tried()] if title == "Upload" else [],
    )


def tried() -> Table:
    """What was tried for table 4, one at a time and together."""
    queue: dict[str, str | float] = {"access_point.buffer": 1_000}
    damaged = {share: {"stations.tablet.frame_error_rate": share} for share in (0.1, 0.15)}
    lost: dict[float, dict[str, str | float]] = {share: {"wired.loss": share} for share in (0.001, 0.01)}
    runs_of: dict[str, Mapping[str, str | float]] = {
        "1,000 packets in the access point": queue,
        "2,000 packets in the access point": {"access_point.buffer": 2_000},
        "queues of 50 packets in the stations": {"stations.tablet.queue": 50},
        **{f"{share:.1%} of the packets lost on the wire": keys for share, keys in lost.items()},
        **{f"{share:.0%} of the frames damaged": keys for share, keys in damaged.items()},
        **{f"1,000 packets, {share:.1%} lost": queue | keys for share, keys in lost.items()},
        **{f"1,000 packets, {share:.0%} damaged": queue | keys for share, keys in damaged.items()},
        "1,000 packets, 10% damaged, no protection": queue | damaged[0.1] | {"access_point.protection": "none"},
    }
    rows: list[list[Cell]] = []
    for label, keys in runs_of.items():
        result = simulate(UP, [f"stations-{count}" for count in COUNTS], repeat=TRIED, keys=keys)
        found = {count: times(result, f"stations-{count}") for count in COUNTS}
        off = [change(middle, TABLE_4[count][2]) for count, (_, _, middle) in found.items()]
        spreads = ", ".join(f"{most - least:.0f}" for least, most, _ in found.values())
        single = simulate(SINGLE, ["up"], repeat=TRIED, keys={**FITTED, **keys}, solos=False)
        rows.append([label, *off, spreads, mean(single, "up", "total_goodput_mbps"), " ".join(f"--set {key}={value}" for key, value in keys.items())])
    return Table(
        [
            "switched on",
            *(f"mean of {count} stations beside the paper's" for count in COUNTS),
            "most - least of each, s",
            "one station alone (table 2), Mbit/s",
            "keys of the command",
        ],
        rows,
        f"What was tried, {TRIED} seeds; the command is that of the table, with the keys of the row and the conditions of the columns",
    )


def times(result: wakeai.Result, condition: str) -> tuple[float, float, float]:
    """Least, largest and mean completion, each a mean over the repeats, s."""
    each = flows(result, condition).group_by("repeat", maintain_order=True).agg(
        least=pl.min("completion_s"), most=pl.max("completion_s"), mean=pl.mean("completion_s")
    )
    least, most, middle = (number(each[column].mean()) for column in ("least", "most", "mean"))
    return least, most, middle


WAITS = ("timeouts", "stations with several", "longest stall, s")


def waits(result: wakeai.Result, condition: str) -> list[Cell]:
    """Timeouts and stations with several of them, means over the repeats, and the longest stall of any station."""
    every = by_run(flows(result, condition))
    timeouts = average(number(run["timeouts"].sum()) for run in every)
    several = average(run.filter(pl.col("timeouts") > 1).height for run in every)
    return [timeouts, several, number(flows(result, condition)["longest_stall_s"].max())]


def rates(recorded: wakeai.Result, scenario: str, name: str, direction: str) -> Figure:
    """Figure 8 or 9."""
    drawing, (axes,) = draw.panels(1)
    rows = recorded.to_polars("goodput").with_columns(at_s=(pl.col("at_ns") / 1e9).ceil())
    seconds = rows.group_by("station", "at_s").agg(mbps=pl.sum("bytes") * 8e-6).sort("station", "at_s")
    for (_,), line in seconds.group_by("station", maintain_order=True):
        axes.plot(line["at_s"], line["mbps"], linewidth=0.6, alpha=0.7)
    draw.finish(axes, f"{direction}, 40 stations, seed 1", "time, s", "goodput, Mbit/s", legend=False)
    most = number(seconds["mbps"].max())
    if direction == "download":
        average = number(flows(recorded, "stations-40")["goodput_mbps"].mean())
        return Figure(
            name=name,
            shows="Goodput of 40 stations over time, download",
            paper="A picture. Each station gets about 0.5 Mbit/s, evenly, and at times nearly 0.",
            ours=f"{average:.2f} Mbit/s each on average, and at most {most:.1f} in any second.",
            agrees=0.4 < average < 0.65,
            deviation="None.",
            command=command(scenario, "stations-40", repeat=1, records=True),
            drawing=drawing,
            file="papers-dense-download.png",
        )
    return Figure(
        name=name,
        shows="Goodput of 40 stations over time, upload",
        paper="A picture. Towards the end single stations that had been waiting reach about 23 Mbit/s.",
        ours=f"The highest goodput of a station in any second is {most:.1f} Mbit/s.",
        agrees=most > 15,
        deviation="Ours is what the application receives: a second has more than a station's 20.8 Mbit/s (table 2) where a gap is "
        "filled and what waited behind it is delivered. The paper's was captured in the air.",
        command=command(scenario, "stations-40", repeat=1, records=True),
        drawing=drawing,
        file="papers-dense-upload.png",
    )


def first_and_last(recorded: wakeai.Result) -> Figure:
    """Figures 10 and 11."""
    done = flows(recorded, "stations-40").drop_nulls("completion_s").sort("completion_s")
    ends = {"first": done.row(0, named=True), "last": done.row(-1, named=True)}
    drawing, places = draw.panels(2, sharey=True)
    for axes, (word, flow) in zip(places, ends.items(), strict=True):
        plots.goodput(recorded, "stations-40", stations=[flow["station"]], axes=axes)
        draw.finish(axes, f"the {word} to end", "time, s", "goodput, Mbit/s", legend=False)
    several = flows(recorded, "stations-40").filter(pl.col("timeouts") > 1).height
    stall = number(ends["last"]["longest_stall_s"])
    return Figure(
        name="figures 10 and 11",
        shows="Goodput of the first and the last station to end, upload of 40",
        paper="Pictures. The first one sends above 0.5 Mbit/s all the time. The last one waits almost from second 20 to second "
        "260 with repeated timeouts. 31 of 40 stations have several timeouts.",
        ours=f"The first ends after {ends['first']['completion_s']:.0f} s, with {ends['first']['timeouts']} timeouts. The last one ends "
        f"after {ends['last']['completion_s']:.0f} s and receives nothing for {stall:.0f} s at a stretch, with "
        f"{ends['last']['timeouts']} timeouts. {several} of 40 stations have several timeouts.",
        agrees=stall > 30 and several >= 20,
        deviation="Our last station ends earlier, as in table 4.",
        command=command(UP, "stations-40", repeat=1, records=True),
        drawing=drawing,
        file="papers-dense-first-last.png",
    )


def split(uploads: wakeai.Result, conditions: dict[int, str], repeat: int) -> Figure:
    """Figures 12 and 13."""
    rows: list[list[Cell]] = []
    spreads, within = [], []
    for count, condition in conditions.items():
        done = flows(uploads, condition)["completion_s"].drop_nulls()
        near = done.filter((done - PEAK_S).abs() <= NEAR_S).len() / repeat
        spreads.append(number(done.std()))
        each = [run["completion_s"].drop_nulls() for run in by_run(flows(uploads, condition))]
        within.append(average(number(run.std(ddof=0)) for run in each))
        least, most, middle = times(uploads, condition)
        rows.append([count, least, most, middle, most - least, spreads[-1], within[-1], near])
    return Figure(
        name="figures 12 and 13",
        shows="Upload of 40 stations in 1 to 80 pieces: transfer times, s",
        paper=f"Pictures. The more pieces, the narrower the distribution, and its peak comes near {PEAK_S} s.",
        ours=f"The standard deviation falls from {spreads[0]:.1f} s with one piece to {spreads[-1]:.1f} s with 80 pieces; "
        f"then {rows[-1][-1]:.0f} of 40 stations end within {NEAR_S} s of {PEAK_S} s.",
        agrees=spreads[-1] < 0.3 * spreads[0] and number(rows[-1][-1]) > 30,
        deviation="The direction agrees. With two pieces the distribution is not yet narrower than with one.",
        command=command(SPLIT, "chunks-80", repeat=repeat),
        columns=[
            *["pieces", "least", "most", "mean", "most - least", "standard deviation", "of a run"],
            f"stations within {NEAR_S} s of {PEAK_S}",
        ],
        rows=rows,
        drawing=distribution(uploads, conditions),
        bounds=[
            Bound(
                "figures 12 and 13: with pieces the stations end closer together",
                "the standard deviation of a run's transfer times falls",
                f"{within[0]:.1f} s whole, {within[-1]:.1f} s in 80 pieces",
                within[-1] < within[0],
            )
        ],
    )


def distribution(result: wakeai.Result, conditions: dict[int, str]) -> Drawing:
    """The transfer times of seed 1, by pieces."""
    drawing, (left, right) = draw.panels(2)
    shown: Sequence[int] = (1, 10, 80)
    for index, (count, condition) in enumerate(conditions.items()):
        one = flows(result, condition).filter(pl.col("repeat") == 0)["completion_s"].drop_nulls()
        left.scatter([index] * len(one), one, s=8, color=COLOURS[0])
        if count in shown:
            look = COLOURS[shown.index(count)]
            right.hist(one, bins=range(0, 300, 10), label=f"{count} pieces", histtype="step", color=look)
    left.set_xticks(range(len(conditions)), [str(count) for count in conditions])
    draw.finish(left, "seed 1", "pieces", "transfer time, s")
    draw.finish(right, "distribution, seed 1", "transfer time, s", "stations")
    return drawing


def buffers(repeat: int) -> Further:
    """The transfers of 40 stations with other buffers of the access point."""
    rows: list[list[Cell]] = []
    for direction, scenario in {"down": DOWN, "up": UP}.items():
        for packets in BUFFERS:
            keys = {"access_point.buffer": packets}
            result = simulate(scenario, ["stations-40"], repeat=repeat, keys=keys, solos=False)
            drops = mean(result, "stations-40", "drops_access_point")
            rows.append([direction, packets, *times(result, "stations-40"), *waits(result, "stations-40"), drops])
    return Further(
        shows="What the access point's buffer does",
        says="40 stations transfer 10 MB each. The TCP-AV study found that an access point of its time held about 300 packets; "
        "Yamaguchi et al. do not say what theirs held.",
        tables=[Table(["direction", "buffer", "least, s", "most, s", "mean, s", *WAITS, "drops"], rows)],
        commands=[command(UP, "stations-40", repeat=repeat, keys={"access_point.buffer": BUFFERS[0]})],
    )


def turns(uploads: wakeai.Result, conditions: Sequence[str], repeat: int) -> Further:
    """Uploads side by side and in turns. The last condition of each case is in turns, and one beside it has the same law."""
    mixed = ["default", "airtime-35", "turns-35"]
    cases = {
        "40 stations, sim": (uploads, conditions, "airtime"),
        "35 with agents, 5 without, sim": (simulate(TURNS, mixed, repeat=repeat), mixed, "airtime-35"),
    }
    if has_lab(LAB_TURNS, "turns"):
        cases["20 stations, lab"] = (lab_runs(LAB_TURNS), ["default", "airtime", "turns"], "airtime")
    rows: list[list[Cell]] = []
    bounds = []
    for case, (result, of_case, beside) in cases.items():
        found = {condition: Ends(result, condition) for condition in of_case}
        rows += [[case, condition, *one.row()] for condition, one in found.items()]
        bounds += bounds_of_turns(case, found[of_case[-1]], found[beside])
    return Further(
        shows="The upload of section 4 side by side and in turns",
        says="The uploads are made side by side and in turns (docs/concepts/turns.md). The number of pieces is fixed, or the sender "
        "decides (`auto`). The cases are: without agents and under `airtime`, with 5 of the 40 stations without an agent, and with 20 "
        "stations in the lab. n · size / solo is the sum of the times that the transfers take alone.",
        tables=[
            Table(
                [
                    *["case", "condition", "n · size / solo, s", "mean completion", "last", "latest of a run"],
                    *["most timeouts with agent", "of any", "incomplete"],
                ],
                rows,
                "Completions as parts of n · size / solo",
            )
        ],
        commands=[
            command(SPLIT, "turns", repeat=repeat),
            command(TURNS, "turns-35", repeat=repeat),
            command(LAB_TURNS, "turns", world="lab"),
        ],
        bounds=bounds,
    )


class Ends:
    """The completions of a condition, as parts of n · size / solo."""

    def __init__(self, result: wakeai.Result, condition: str) -> None:
        every = by_run(flows(result, condition))
        solos = by_run(rows_of(result, "stations", condition))
        self.ideal_s = average(
            number(run["bytes"].max()) * 8e-6 * number((1 / run.join(solo, on="station")["max_mbps"]).sum())
            for run, solo in zip(every, solos, strict=True)
        )
        times = [run["completion_s"].drop_nulls() for run in every]
        self.lasts = [number(run.max()) / self.ideal_s for run in times]
        self.mean = average(number(run.mean()) for run in times) / self.ideal_s
        with_agent = flows(result, condition).filter(pl.col("station").str.starts_with("tablet"))
        self.most_timeouts = int(number(with_agent["timeouts"].max()))
        self.most_of_any = int(number(flows(result, condition)["timeouts"].max()))
        self.incomplete = sum(run["completion_s"].null_count() for run in every)

    def row(self) -> list[Cell]:
        """The cells of the table."""
        ends = [self.ideal_s, self.mean, average(self.lasts), max(self.lasts)]
        return [*ends, self.most_timeouts, self.most_of_any, self.incomplete]


def bounds_of_turns(case: str, turns: Ends, beside: Ends) -> list[Bound]:
    """The bounds on uploads in turns, also compared with those side by side under the same law."""
    complete = turns.incomplete == 0
    latest = max(turns.lasts)
    later = sum(own > other for own, other in zip(turns.lasts, beside.lasts, strict=False))
    bounds = [
        ("the last completion", "within 5 % of n · size / solo in each run", f"{latest:.3f} at the most", complete and latest <= 1.05),
        ("the mean completion", "0.60 of n · size / solo or less", f"{turns.mean:.3f}", complete and turns.mean <= 0.60),
        (
            "no station ends later than the last one does side by side under the same law",
            "in each run",
            f"{later} of {len(turns.lasts)} runs later",
            later == 0,
        ),
        ("timeouts of a station with an agent", "at most one", str(turns.most_timeouts), turns.most_timeouts <= 1),
    ]
    return [Bound(f"turns, {case}: {what}", bound, value, holds) for what, bound, value, holds in bounds]
