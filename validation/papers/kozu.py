"""Kozu et al.: RTT-fair CUBIC between 128 and 1024 ms."""

from __future__ import annotations

import polars as pl
import wakeai
from wakeai.plots import COLOURS

import draw
from figure import Bound, Cell, Figure, Paper, Table
from runs import TRIED, change, command, has_lab, lab, lab_runs, mean, number, pair, simulate

RTTS = (128, 256, 512, 1024)
ALGORITHMS = {"CUBIC": "standard", "RTT-fair CUBIC": "fair"}
BOTTLENECKS = {"FIFO": "wire", "air": "air"}
COMPETING = "scenarios/kozu-competing.toml"
MOVING = "scenarios/kozu-moving.toml"
MOVES = {"128; 128 to 1024 ms": "grows", "128; 1024 to 128 ms": "shrinks", "128 to 1024; 1024 to 128 ms": "swap"}
# RTT-fair CUBIC must not lose a larger part of the goodput, nor change Jain's index beside Compound by more.
LOSS, INDEX = 0.05, 0.05
PRINTED = {"flows.1.rtt_ref": "1s"}  # the formula as the paper prints it, with the RTT in seconds
PLACE = (
    "The paper does not say where its bottleneck was; the table has a FIFO of 20 Mbit/s behind the access point, and the air."
)


def paper(repeat: int) -> Paper:
    """Makes the runs and the figures."""
    conditions = [f"{place}-{word}-{rtt}" for place in BOTTLENECKS.values() for word in ALGORITHMS.values() for rtt in RTTS]
    competing = simulate(COMPETING, conditions, repeat=repeat, solos=False)
    far = [f"{place}-{word}-1024" for place in BOTTLENECKS.values() for word in ALGORITHMS.values()]
    recorded = simulate(COMPETING, far, repeat=1, records=True, solos=False)
    return Paper(
        short="Kozu et al.",
        title="A study of the communication of Android terminals in high-latency environments (in Japanese)",
        figures=[
            curve(),
            alone(repeat),
            competing_figure(competing, repeat, "CUBIC", "figure 4"),
            competing_figure(competing, repeat, "RTT-fair CUBIC", "figure 5"),
            plateau(recorded, "CUBIC", "figures 6 and 7"),
            plateau(recorded, "RTT-fair CUBIC", "figures 8 and 9"),
            moving(repeat),
            beside_compound(repeat),
        ],
        not_made="Figure 2 and tables 1 and 2 show the set-up and the devices.",
    )


def curve() -> Figure:
    """Figure 1."""
    scenario, condition = "scenarios/kozu-single.toml", "wire-standard-128"
    recorded = simulate(scenario, [condition], repeat=1, records=True, solos=False)
    rows = recorded.to_polars("samples").sort("at_ns")
    losses = recorded.to_polars("events").filter(pl.col("event") == "error").sort("at_ns")
    gaps = (losses["at_ns"].diff().drop_nulls() / 1e9).filter(losses["at_ns"].diff().drop_nulls() > 1e9)
    drawing, (axes,) = draw.panels(1)
    axes.plot(rows["at_ns"] / 1e9, rows["cwnd"], color=COLOURS[0])
    axes.scatter(losses["at_ns"] / 1e9, losses["cwnd"], color=COLOURS[1], marker="x", s=16)
    draw.finish(axes, "CUBIC alone in a FIFO, 128 ms", "time, s", "cwnd, segments")
    k, longest = number(rows["k_ms"].drop_nulls().mean()) / 1e3, number(gaps.max())
    return Figure(
        name="figure 1",
        shows="CUBIC's window between losses",
        paper="A sketch: after a loss the window rises steeply, flattens as it nears the size at the loss, "
        "reaches that size after the time K, and then grows faster and faster.",
        ours=f"K is {k:.1f} s on average, and up to {longest:.1f} s pass between losses (crosses), so both parts of the curve can be seen.",
        agrees=longest > k,
        deviation="None. The sketch has no scale. After every second loss the queue is full before K has passed.",
        command=command(scenario, condition, repeat=1, records=True),
        drawing=drawing,
    )


def alone(repeat: int) -> Figure:
    """Figure 3."""
    scenario = "scenarios/kozu-single.toml"
    conditions = [f"{place}-{word}-{rtt}" for place in BOTTLENECKS.values() for word in ALGORITHMS.values() for rtt in RTTS]
    buffers = {"64 MB": {}, "4 MB": {"stations.phone.tcp": "classic"}}
    results = {size: simulate(scenario, conditions, repeat=repeat, keys=keys, solos=False) for size, keys in buffers.items()}
    found = {
        (label, algorithm, size): [mean(result, f"{place}-{word}-{rtt}", "total_goodput_mbps") for rtt in RTTS]
        for label, place in BOTTLENECKS.items()
        for algorithm, word in ALGORITHMS.items()
        for size, result in results.items()
    }
    lines = {
        f"{label}, buffers of {size}": values
        for (label, algorithm, size), values in found.items()
        if algorithm == "CUBIC"
    }
    drawing, (axes,) = draw.panels(1)
    draw.lines(axes, RTTS, lines)
    draw.finish(axes, "one phone alone", "RTT, ms", "goodput, Mbit/s")
    classic = lines["air, buffers of 4 MB"]
    return Figure(
        name="figure 3",
        shows="Goodput of one phone alone over the RTT, CUBIC",
        paper="A picture. The throughput falls as the RTT grows; at 512 and 1024 ms it stays below what the WLAN carries.",
        ours=f"With the socket buffers of the time, in the air: {classic[0]:.1f} Mbit/s at 128 ms, {classic[2]:.1f} at 512 "
        f"and {classic[3]:.1f} at 1024 ms.",
        agrees=classic[3] < 0.8 * classic[0],
        deviation=f"{PLACE} In ours the fall begins later: 4 MB of buffers fill a path of 512 ms, not one of 1024 ms. A FIFO of "
        "200 packets holds an eighth of the bandwidth-delay product of 1024 ms, so the window after a loss does not fill it. The "
        "paper's phones uploaded from a browser over a real radio, whose further losses are not modelled.",
        command=command(scenario, "air-standard-1024", repeat=repeat) + " --set stations.phone.tcp=classic",
        columns=["bottleneck", "algorithm", "buffers", *(f"{rtt} ms" for rtt in RTTS)],
        rows=[[*name, *values] for name, values in found.items()],
        drawing=drawing,
    )


def competing_figure(competing: wakeai.Result, repeat: int, algorithm: str, name: str) -> Figure:
    """Figure 4 or 5."""
    word = ALGORITHMS[algorithm]
    drawing, places = draw.panels(2)
    rows: list[list[str | float | None]] = []
    index = {}
    for axes, (label, place) in zip(places, BOTTLENECKS.items(), strict=True):
        near, far = ([pair(competing, f"{place}-{word}-{rtt}")[flow] for rtt in RTTS] for flow in (0, 1))
        jain = index[label] = [mean(competing, f"{place}-{word}-{rtt}", "jain") for rtt in RTTS]
        draw.lines(axes, RTTS, {"128 ms": near, "the other": far})
        draw.finish(axes, f"{algorithm}, {label}", "RTT of the other, ms", "goodput, Mbit/s")
        right = axes.twinx()
        right.plot(RTTS, jain, color=COLOURS[6], linestyle="--")
        right.set_ylabel("Jain's index (dashed)")
        right.set_ylim(0, 1.02)
        for rtt, values in zip(RTTS, zip(near, far, jain, strict=True), strict=True):
            condition = f"{place}-{word}-{rtt}"
            total = mean(competing, condition, "total_goodput_mbps")
            rows.append([label, f"128 : {rtt}", *values, total, lab(COMPETING, condition, "jain")])
    fifo, air = index["FIFO"], index["air"]
    if word == "standard":
        statement = "Jain's index is about 1 at equal RTTs, and falls as they grow apart."
        agrees = fifo[0] > 0.95 and fifo[3] < 0.8
    else:
        other = [mean(competing, f"wire-standard-{rtt}", "jain") for rtt in RTTS]
        statement = "The change raises Jain's index much."
        agrees = fifo[3] > 0.9 and other[3] < 0.8
    return Figure(
        name=name,
        shows=f"Two uploads with {algorithm}, one at 128 ms",
        paper=f"A picture. {statement}",
        ours=f"The index goes from {fifo[0]:.3f} at equal RTTs to {fifo[3]:.3f} at 128 against 1024 ms in the FIFO, and "
        f"from {air[0]:.3f} to {air[3]:.3f} in the air.",
        agrees=agrees,
        deviation=f"{PLACE} In the air each station has a queue of its own and equally many turns, so even CUBIC stays "
        "fair; the statement is compared in the FIFO.",
        command=command(COMPETING, f"wire-{word}-1024", repeat=repeat),
        columns=["bottleneck", "RTTs, ms", "at 128 ms, Mbit/s", "the other, Mbit/s", "Jain", "total", "the lab's Jain"],
        rows=rows,
        drawing=drawing,
        bounds=[] if word == "standard" else bounds_of_competing(competing),
    )


def bounds_of_competing(competing: wakeai.Result) -> list[Bound]:
    """The bounds at 128 against 1024 ms."""

    def figure(condition: str, column: str) -> float:
        return mean(competing, condition, column)

    fair, standard = (figure(f"wire-{word}-1024", "jain") for word in ("fair", "standard"))
    totals = [figure(f"wire-{word}-1024", "total_goodput_mbps") for word in ("fair", "standard")]
    bounds = [
        Bound(
            "figures 4 and 5: Jain's index in the FIFO, 128 against 1024 ms",
            "RTT-fair CUBIC's 0.9 or more, CUBIC's below 0.8",
            f"{fair:.3f}, CUBIC {standard:.3f}",
            fair >= 0.9 and standard < 0.8,
        ),
        Bound(
            "figures 4 and 5: total goodput there",
            f"RTT-fair CUBIC loses {LOSS:.0%} at the most",
            change(*totals),
            totals[0] / totals[1] - 1 >= -LOSS,
        ),
    ]
    far = [f"{place}-{word}-1024" for place in BOTTLENECKS.values() for word in ALGORITHMS.values()]
    off = {
        condition: abs(mean(lab_runs(COMPETING), condition, "jain") - figure(condition, "jain"))
        for condition in far
        if has_lab(COMPETING, condition)
    }
    if off:
        worst = max(off, key=lambda condition: off[condition])
        what = "figures 4 and 5: the lab's index at 128 against 1024 ms"
        bounds.append(Bound(what, "within 0.1", f"worst {off[worst]:.3f} ({worst})", off[worst] <= 0.1))
    return bounds


def plateau(recorded: wakeai.Result, algorithm: str, name: str) -> Figure:
    """Figures 6 and 7, or 8 and 9."""
    drawing, places = draw.panels(2, sharey=True)
    means: dict[str, list[float]] = {}
    for label, place in BOTTLENECKS.items():
        condition = f"{place}-{ALGORITHMS[algorithm]}-1024"
        samples = recorded.to_polars("samples").filter(pl.col("condition") == condition).drop_nulls("k_ms")
        means[label] = []
        for axes, (station, rtt) in zip(places, {"near": 128, "far": 1024}.items(), strict=True):
            own = samples.filter(pl.col("station") == station).sort("at_ns")
            if label == "FIFO":
                axes.step(own["at_ns"] / 1e9, own["k_ms"] / 1e3, where="post", color=COLOURS[0])
                draw.finish(axes, f"{algorithm}, {rtt} ms", "time, s", "K, s")
            span = own["at_ns"].diff().shift(-1).fill_null(0)
            means[label].append(number((own["k_ms"] * span).sum()) / number(span.sum()) / 1e3)
    larger = algorithm == "CUBIC"
    near, far = means["FIFO"]
    direction = "The direction agrees, also in the air. K grows with the cube root of the window's reduction at a loss"
    return Figure(
        name=name,
        shows=f"K of {algorithm} over time at 128 and 1024 ms, seed 1",
        paper=f"Pictures. K is {'larger' if larger else 'smaller'} at the longer RTT.",
        ours=f"The mean of K over time is {near:.1f} s at 128 ms and {far:.1f} s at 1024 ms, in the FIFO.",
        agrees=(far > near) == larger,
        deviation=f"{direction}. Both share a FIFO of 200 packets, in which the window at the longer RTT, and so "
        "its K, stays small."
        if larger
        else f"{direction}; `wakeai_rtt` divides it by the cube root of the RTT.",
        command=command(COMPETING, f"wire-{ALGORITHMS[algorithm]}-1024", repeat=1, records=True),
        columns=["bottleneck", "mean K at 128 ms, s", "at 1024 ms"],
        rows=[[label, *values] for label, values in means.items()],
        drawing=drawing,
        file=f"papers-k-{ALGORITHMS[algorithm]}.png",
    )


def moving(repeat: int) -> Figure:
    """Figure 10."""
    result = simulate(MOVING, moved(), repeat=repeat, solos=False)
    gains = gains_of(result)
    rows: list[list[Cell]] = []
    for label, place in BOTTLENECKS.items():
        for rtts, move in MOVES.items():
            pairs = [pair(result, f"{place}-{word}-{move}") for word in ALGORITHMS.values()]
            indices = [mean(result, f"{place}-{word}-{move}", "jain") for word in ALGORITHMS.values()]
            each = [change(fair, standard) for standard, fair in zip(*pairs, strict=True)]
            totals = [mean(result, f"{place}-{word}-{move}", "total_goodput_mbps") for word in ALGORITHMS.values()]
            rows.append([label, rtts, *pairs[0], indices[0], *pairs[1], indices[1], ", ".join(each), change(totals[1], totals[0])])
    return Figure(
        name="figure 10",
        shows="The RTT changes in mid-run",
        paper="A picture. The change lowers Jain's index, and makes every connection faster.",
        ours=f"Of {len(gains)} connections {sum(gain > 0.01 for gain in gains)} become faster by more than 1 %, and "
        f"{sum(gain < -0.01 for gain in gains)} slower.",
        agrees=all(gain > -0.01 for gain in gains),
        deviation="In ours the path is always full, so one connection gains what the other one loses, and the index rises. Where the two RTTs change places, the goodputs even out over the "
        "run with either algorithm. The "
        "paper's connections left much of the path unused (figure 3), so both could gain. Nearly all do where packets are lost and `rtt_ref` is 100 ms, the RTT for which Linux "
        "scales CUBIC (the second table). It is not counted: figure 4 does not agree then, because connections that leave "
        "the path unused take nothing from each other.",
        command=command(MOVING, "wire-fair-grows", repeat=repeat),
        columns=["bottleneck", "RTTs", "CUBIC: first", "second", "Jain", "RTT-fair: first", "second", "Jain", "of each", "of the total"],
        rows=rows,
        more=[tried()],
    )


def moved() -> list[str]:
    """The conditions of figure 10."""
    return [f"{place}-{word}-{move}" for place in BOTTLENECKS.values() for word in ALGORITHMS.values() for move in MOVES.values()]


def gains_of(result: wakeai.Result) -> list[float]:
    """What the change gives each connection of figure 10, as a part of its goodput."""
    gains = []
    for place in BOTTLENECKS.values():
        for move in MOVES.values():
            pairs = (pair(result, f"{place}-{word}-{move}") for word in ALGORITHMS.values())
            gains += [fair / standard - 1 for standard, fair in zip(*pairs, strict=True)]
    return gains


def tried() -> Table:
    """What was tried for figure 10: losses, and another RTT at which the change is CUBIC."""
    ends = ("wire-standard-128", "wire-standard-1024", "wire-fair-1024")
    rows: list[list[Cell]] = []
    for loss in (0.0, 0.0007, 0.003):
        for reference in ("200ms", "100ms"):
            keys: dict[str, str | float] = {f"flows.{flow}.rtt_ref": reference for flow in (1, 2)}
            keys |= {"wired.loss": loss} if loss else {}
            gains = gains_of(simulate(MOVING, moved(), repeat=TRIED, keys=keys, solos=False))
            competing = simulate(COMPETING, ends, repeat=TRIED, keys=keys, solos=False)
            indices = [mean(competing, condition, "jain") for condition in ends]
            found: list[Cell] = [sum(gain > 0.01 for gain in gains), sum(gain < -0.01 for gain in gains), f"{min(gains):+.1%}"]
            rows.append([f"{loss:.2%}", reference, *found, *indices])
    heads = ["lost", "RTT_ref", "faster", "slower", "the least gain", "figure 4: index at equal RTTs", "at 128 : 1024", "figure 5: at 128 : 1024"]
    return Table(
        heads,
        rows,
        f"What was tried, {TRIED} seeds: `--set wired.loss=…` and `--set flows.1.rtt_ref=… --set flows.2.rtt_ref=…` for the commands of figures 10, 4 and 5; the indices are those of the FIFO",
    )


def beside_compound(repeat: int) -> Figure:
    """Figure 11."""
    scenario = "scenarios/kozu-compound.toml"
    places = {"128 : 128": "both-128"} | {f"{rtt} : 128": f"phone-{rtt}" for rtt in RTTS[1:]}
    places |= {f"128 : {rtt}": f"pc-{rtt}" for rtt in RTTS[1:]}
    conditions = [
        f"{place}-{word}-{at}" for place in BOTTLENECKS.values() for word in ALGORITHMS.values() for at in places.values()
    ]
    result = simulate(scenario, conditions, repeat=repeat, solos=False)
    rows: list[list[Cell]] = []
    fair = [condition for condition in conditions if "-fair-" in condition]
    printed = simulate(scenario, fair, repeat=repeat, keys=PRINTED, solos=False)
    changes: dict[tuple[str, str], tuple[float, float]] = {}
    for label, place in BOTTLENECKS.items():
        for rtts, at in places.items():
            pairs = [pair(result, f"{place}-{word}-{at}") for word in ALGORITHMS.values()]
            indices = [mean(result, f"{place}-{word}-{at}", "jain") for word in ALGORITHMS.values()]
            changes[label, rtts] = (pairs[1][1] / pairs[0][1] - 1, abs(indices[1] - indices[0]))
            condition = f"{place}-fair-{at}"
            as_printed: list[Cell] = [mean(printed, condition, "jain"), change(pair(printed, condition)[1], pairs[0][1])]
            row: list[Cell] = [label, rtts, *pairs[0], indices[0], *pairs[1], indices[1]]
            rows.append([*row, f"{changes[label, rtts][0]:+.1%}", *as_printed])
    worst = {label: min(off[0] for (of, _), off in changes.items() if of == label) for label in BOTTLENECKS}
    return Figure(
        name="figure 11",
        shows="A phone beside a Windows PC with Compound TCP",
        paper="A picture. The change hardly helps fairness here, and does not harm the PC much (here: 10 % at most).",
        ours=f"The PC's goodput changes by {worst['air']:+.1%} at worst in the air, and by {worst['FIFO']:+.1%} in the FIFO.",
        agrees=worst["air"] > -0.1,
        deviation=f"{PLACE} In the air ours agrees. In the FIFO more than 30 segments of Compound are queued most of the time, so its "
        "delay window is closed and it behaves like Reno; the goodput that RTT fairness gives to a phone at a longer RTT comes from "
        "the PC. The paper does not say which of the two has which RTT. The last two columns have the formula as the paper prints it, "
        "with the RTT in seconds (`--set flows.1.rtt_ref=1s`): a far phone is then about as fast as with CUBIC, but a near one that competes with CUBIC gets less "
        "than its share (RTT_ref: decision 004).",
        command=command(scenario, "wire-fair-phone-1024", repeat=repeat),
        columns=[
            *["bottleneck", "RTT phone : PC", "CUBIC", "PC", "Jain", "RTT-fair", "PC", "Jain", "PC's change"],
            *["Jain, RTT_ref 1 s", "PC's change"],
        ],
        rows=rows,
        bounds=bounds_beside_compound(changes),
    )


def bounds_beside_compound(changes: dict[tuple[str, str], tuple[float, float]]) -> list[Bound]:
    """The bounds on the PC's loss and on Jain's index, by bottleneck and by which of the two is far."""

    def is_far(rtts: str) -> bool:
        return not rtts.startswith("128")

    places = {
        "air, all RTTs": [rtts for label, rtts in changes if label == "air"],
        "FIFO, equal RTTs or a far PC": [rtts for label, rtts in changes if label == "FIFO" and not is_far(rtts)],
        "FIFO, a far phone": [rtts for label, rtts in changes if label == "FIFO" and is_far(rtts)],
    }
    bounds = []
    for what, chosen in places.items():
        own = {rtts: changes[what.split(",")[0], rtts] for rtts in chosen}
        lost = min(own, key=lambda rtts: own[rtts][0])
        moved = max(own, key=lambda rtts: own[rtts][1])
        bounds.append(
            Bound(
                f"figure 11: Compound beside RTT-fair CUBIC; {what}",
                f"loses {LOSS:.0%} at the most, index within {INDEX}",
                f"worst {own[lost][0]:+.1%} ({lost} ms), index {own[moved][1]:.3f} ({moved})",
                own[lost][0] >= -LOSS and own[moved][1] <= INDEX,
            )
        )
    return bounds
