"""The TCP-AV study: fairness of 2 to 7 uploads on 802.11g, and TCP-AV beside Reno."""

from __future__ import annotations

import polars as pl
import wakeai
from wakeai.plots import COLOURS

import draw
from figure import Bound, Cell, Figure, Further, Paper, Table, at_least
from runs import TRIED, average, by_run, command, flows, has_lab, jain, lab_runs, mean, number, rows_of, runs, simulate

FAIRNESS, TARGET = "scenarios/wlan-fairness.toml", "scenarios/av-target.toml"
RESERVED, PROXY, MANY = "scenarios/av-reserved.toml", "scenarios/lab/av-proxy.toml", "scenarios/av-many.toml"
RUNS = 10  # as the study made
UNFAIR = 0.95
STARVES = 0.1
"""A station starves if it gets less than this part of an even share."""
ALONE_MBPS = 24.16
"""The equivalent bandwidth (EB): the goodput of one station alone, as in the scenarios."""
NRT = (10, 18, 20, 25, 30, 40, 50, 60, 70, 80, 100)
"""Targets in percent of what a station reaches alone."""
RESERVED_NRT, PROMISED, LAB_NRT = (10, 20, 25, 40, 60, 80, 100), (10, 20, 25, 40), (20, 25, 40)
"""The targets with a reservation: in the simulator, those up to twice the fair share of five, and in the lab."""


def paper(repeat: int) -> Paper:
    """Makes the runs and the figures."""
    uploads = simulate(FAIRNESS, [f"up-{count}" for count in range(2, 8)], repeat=RUNS, solos=False)
    return Paper(
        short="The TCP-AV study",
        title="A study of TCP-AV over a wireless LAN (in Japanese)",
        figures=[ten(), by_count(uploads), days(uploads), controls(), target()],
        not_made="Figures 1 to 4, 7 and 16 define unfairness, and show mechanisms and set-ups. Section 2.3 says that its access point "
        "held about 300 packets, which is a value of our scenarios. `wakeai probe buffer` measures this value on a real "
        "access point, and its tests find the lab's 300 within 5 %.",
        further=[over_nrt(), reserved(repeat), many(repeat)],
    )


def ten() -> Figure:
    """Figures 5 and 6."""
    old: dict[str, str | int] = {"stations.reno.count": 9, "access_point.standard": "802.11b"}
    result = simulate(FAIRNESS, ["up-5"], repeat=1, keys=old, solos=False)
    swept: dict[str, dict[str, str | int]] = {
        "802.11g": {"stations.reno.count": 9},
        **{f"802.11b, {packets} packets": old | {"access_point.buffer": packets} for packets in (50, 100, 200, 300, 500)},
        "802.11b, short preamble": old | {"access_point.preamble": "short"},
        "802.11b, ACKs at 1 Mbit/s": old | {"access_point.control_rate": "1Mbit/s"},
    }
    rows: list[list[Cell]] = []
    for label, keys in swept.items():
        found = flows(simulate(FAIRNESS, ["up-5"], repeat=TRIED, keys=keys, solos=False), "up-5")
        each = [run["goodput_mbps"].to_list() for run in by_run(found)]
        hold = sum(jain(one) < UNFAIR and min(one) < 0.5 * sum(one) / len(one) for one in each)
        starving = average(starved(one, sum(one) / len(one)) for one in each)
        rows.append([label, average(jain(one) for one in each), average(min(one) for one in each), starving, f"{hold} of {TRIED}"])
    shares = flows(result, "up-5")["goodput_mbps"].to_list()
    drawing, (axes,) = draw.panels(1)
    axes.bar(range(1, len(shares) + 1), shares, color=COLOURS[0])
    draw.finish(axes, "ten uploads, seed 1", "station", "goodput, Mbit/s")
    index = mean(result, "up-5", "jain")
    return Figure(
        name="figures 5 and 6",
        shows="Goodput of ten uploads",
        paper="Pictures of earlier studies, in a simulator and with CardBus adapters. Some stations get almost nothing.",
        ours=f"Jain's index is {index:.3f}; the slowest station gets {min(shares):.2f} Mbit/s, and the fastest one {max(shares):.2f} Mbit/s.",
        agrees=index < UNFAIR and min(shares) < 0.5 * sum(shares) / len(shares),
        deviation="None. The paper does not name the standard of these studies; where it explains them (section 2.2) ten stations share "
        "11 Mbit/s of 802.11b, which ours do. Of the access point's buffer it says that simulations had about the 300 packets that "
        "it measured; the table has others, and the other preamble. On 802.11g all stations get something.",
        command=command(FAIRNESS, "up-5", repeat=1, keys=old),
        drawing=drawing,
        more=[
            Table(
                ["air", "mean of Jain's index", "slowest station, Mbit/s", "starving stations", "runs in which the rule holds"],
                rows,
                f"Other air and buffers, {TRIED} seeds each (`--set access_point.buffer=50` and so on)",
            )
        ],
    )


def by_count(uploads: wakeai.Result) -> Figure:
    """Figures 8 to 13."""
    drawing, places = draw.panels(2, 3)
    rows: list[list[Cell]] = []
    for count, axes in zip(range(2, 8), places, strict=True):
        condition = f"up-{count}"
        found = flows(uploads, condition)
        for (station,), line in found.sort("flow").group_by("station", maintain_order=True):
            axes.plot(line["repeat"] + 1, line["goodput_mbps"], marker="o", markersize=3, label=station)
        draw.finish(axes, f"{count} stations", "run", "goodput, Mbit/s", legend=False)
        each = runs(uploads, condition)["jain"]
        rows.append([count, number(each.mean()), number(each.min()), each.filter(each < UNFAIR).len(), *others(uploads, condition)])
    indices = [number(row[1]) for row in rows]
    return Figure(
        name="figures 8 to 13",
        shows="Goodput of 2 to 7 uploads, ten runs",
        paper="Pictures. 2 to 4 stations are nearly fair, 5 to 7 are not.",
        ours=f"The mean of Jain's index is {min(indices[:3]):.3f} or more up to 4 stations, and "
        f"{max(indices[3:]):.3f} or less from 5 on (rule: at least {UNFAIR}, then less).",
        agrees=min(indices[:3]) >= UNFAIR and max(indices[3:]) < UNFAIR,
        deviation="In the study the same station is slow in successive runs; our runs do not depend on each other.",
        command=command(FAIRNESS, "up-5", repeat=RUNS),
        columns=["stations", "mean of Jain's index", "least", f"runs below {UNFAIR}", *OTHERS],
        rows=rows,
        drawing=drawing,
    )


OTHERS = ("total, Mbit/s", "starving stations", "runs with any")


def others(result: wakeai.Result, condition: str) -> list[Cell]:
    """The total goodput, the mean number of stations that starve in a run, and the runs in which one does."""
    starving = [
        starved(shares, sum(shares) / len(shares))
        for shares in (run["goodput_mbps"].to_list() for run in by_run(flows(result, condition)))
    ]
    return [mean(result, condition, "total_goodput_mbps"), average(starving), sum(count > 0 for count in starving)]


def starved(shares: list[float], even: float) -> int:
    """The number of stations that starve: they got less than a tenth of the equal share `even`."""
    return sum(share < STARVES * even for share in shares)


def days(uploads: wakeai.Result) -> Figure:
    """Figures 14 and 15."""
    drawing, places = draw.panels(3, sharey=True)
    rows: list[list[Cell]] = []
    slow: set[str] = set()
    for day, axes in enumerate(places):
        seed = 1 + RUNS * day
        result = uploads if day == 0 else simulate(FAIRNESS, ["up-5"], repeat=RUNS, seed=seed, solos=False)
        found = flows(result, "up-5")
        middle = number(found["goodput_mbps"].mean())
        slowest = []
        for (station,), line in found.sort("flow").group_by("station", maintain_order=True):
            axes.plot(line["repeat"] + 1, line["goodput_mbps"], marker="o", markersize=3)
            if number(line["goodput_mbps"].min()) < 0.5 * middle:
                slowest.append(str(station))
        slow.update(slowest)
        draw.finish(axes, f"seeds {seed} to {seed + RUNS - 1}", "run", "goodput, Mbit/s", legend=False)
        rows.append([f"{seed} to {seed + RUNS - 1}", mean(result, "up-5", "jain"), ", ".join(slowest) or "none"])
    each: list[list[Cell]] = []
    for run in by_run(flows(uploads, "up-5").sort("flow")):
        shares = run["goodput_mbps"].to_list()
        each.append([len(each) + 1, *shares, jain(shares), shares.index(min(shares)) + 1])
    losers = [sum(row[-1] == station for row in each) for station in range(1, 6)]
    least = min(5 * min(shares) / sum(shares) for shares in ([number(cell) for cell in row[1:6]] for row in each))
    return Figure(
        name="figures 11, 14 and 15",
        shows="Five uploads on three days, ten runs each",
        paper="Pictures. On each day other stations are slow, so in the long run it is chance which ones are.",
        ours=f"{len(slow)} of 5 stations are below half of the mean in some run.",
        agrees=len(slow) >= 3,
        deviation="Within a day the study's slow stations stay the same from run to run, which it could not explain; ours change with "
        f"each seed. Stations 1 to 5 have the least goodput in {', '.join(map(str, losers))} of the first {RUNS} runs. The study's losers "
        f"got next to nothing; here none gets less than {least:.0%} of an even share.",
        command=command(FAIRNESS, "up-5", repeat=RUNS, seed=1 + RUNS),
        columns=["seeds", "mean of Jain's index", "stations below half of the mean in some run"],
        rows=rows,
        drawing=drawing,
        more=[Table(["run", "1", "2", "3", "4", "5", "Jain", "least served"], each, f"Seeds 1 to {RUNS}, Mbit/s")],
    )


def controls() -> Figure:
    """Section 3.3."""
    names = {f"{kind}-{count}": (word, count) for kind, word in (("udp", "UDP"), ("down", "download")) for count in range(2, 6)}
    result = simulate(FAIRNESS, list(names), repeat=RUNS, solos=False)
    indices = {condition: mean(result, condition, "jain") for condition in names}
    least = {condition: number(runs(result, condition)["jain"].min()) for condition in names}
    return Figure(
        name="section 3.3",
        shows="UDP uploads, and downloads, of 2 to 5 stations",
        paper="Both are nearly fair, so lost ACKs are a cause of the unfairness.",
        ours=f"Jain's index is {min(indices.values()):.3f} or more (rule: at least {UNFAIR}).",
        agrees=min(indices.values()) >= UNFAIR,
        deviation="None.",
        command=command(FAIRNESS, "udp-5", repeat=RUNS),
        columns=["traffic", "stations", "mean of Jain's index", "least", *OTHERS],
        rows=[[*names[one], index, least[one], *others(result, one)] for one, index in indices.items()],
    )


def target() -> Figure:
    """Figure 17."""
    shares = (50, 90, 100, 125, 200)
    result = simulate(TARGET, [f"share-{share}" for share in shares], repeat=RUNS, solos=False)
    stated = {50: 1.0, 90: 1.0, 100: 1.0, 125: 0.7, 200: 0.1}
    fair = ALONE_MBPS / 5
    avr, reached = {}, {}
    rows: list[list[Cell]] = []
    for share in shares:
        condition = f"share-{share}"
        own = flows(result, condition).filter(pl.col("flow") == 0)
        avr[share], reached[share] = number(own["avr"].mean()), number(own["goodput_mbps"].mean())
        beside = [run["goodput_mbps"].to_list() for run in by_run(flows(result, condition).filter(pl.col("flow") > 0))]
        total = mean(result, condition, "total_goodput_mbps")
        rest = [average(map(average, beside)), average(starved(run, fair) for run in beside), total]
        rows.append([share, fair * share / 100, stated[share], avr[share], reached[share], *rest])
    times = [reached[share] / fair for share in shares if share >= 90]
    drawing, (axes,) = draw.panels(1)
    draw.lines(axes, shares, {"ours": [avr[share] for share in shares]})
    axes.plot(list(stated), list(stated.values()), "--s", color=COLOURS[1], label="the study")
    draw.finish(axes, "TCP-AV beside four Reno flows", "target, % of the fair share", "AVR")
    return Figure(
        name="figure 17",
        shows="Achievement ratio (AVR) of TCP-AV over its target",
        paper="1.0 up to the fair share, 0.7 at 125 % of it, 0.1 or less from 200 % on.",
        ours=", ".join(f"{value:.2f} at {share} %" for share, value in avr.items())
        + " (rule: 0.95 or more at 90 %, and no rise from there on).",
        agrees=avr[90] >= 0.95 and avr[90] >= avr[100] >= avr[125] >= avr[200],
        deviation=f"At 125 % ours reaches its target {avr[125]:.0%} of the time, the study's 70 %. The other stations wait when the "
        "access point drops their ACKs, and leave turns unused. The sender with the target uses these turns, because no loss reduces "
        f"its window below that of the target, and gets {min(times):.2f} to {max(times):.2f} times its share with any target from 90 % "
        "on. It gets no more than that, because DCF limits a station that always has something to send to its own turns.",
        command=command(TARGET, "share-125", repeat=RUNS),
        columns=[
            *["target, % of the fair share", "target, Mbit/s", "the study's AVR", "AVR", "reached, Mbit/s", "the others, mean"],
            *["starving among them", "total"],
        ],
        rows=rows,
        drawing=drawing,
    )


def over_nrt() -> Further:
    """Figure 17 with 2 to 6 stations."""
    rows: list[list[Cell]] = [[f"{nrt} %"] for nrt in NRT]
    for count in range(2, 7):
        for nrt, row in zip(NRT, rows, strict=True):
            result = simulate(TARGET, ["share-90"], repeat=RUNS, keys=target_of(count, nrt), solos=False)
            avr = number(flows(result, "share-90").filter(pl.col("flow") == 0)["avr"].mean())
            row.append(f"{avr:.2f}{' *' if nrt * count <= 100 else ''}")
    return Further(
        shows="Figure 17 with 2 to 6 stations: AVR over the normalised required throughput (NRT)",
        says="TCP-AV holds a target rate. The NRT is the target as a share of the equivalent bandwidth (EB), which is what one station "
        f"reaches alone: {ALONE_MBPS} Mbit/s (the study: 25). The AVR is the share of the time in which the target was reached. "
        "Targets with * are within the fair share. The study shows five stations, and says that the results with fewer stations, and "
        "with six, are alike.",
        tables=[Table(["NRT", "2 stations", "3", "4", "5", "6"], rows)],
        commands=[command(TARGET, "share-90", repeat=RUNS, keys=target_of(5, 25))],
    )


def target_of(count: int, nrt: int) -> dict[str, str | int]:
    """The keys for `count` stations, one of which has a target of `nrt` percent."""
    return {"stations.reno.count": count - 1, "flows.1.rate": f"{ALONE_MBPS * nrt / 100:.2f}Mbit/s"}


def reserved(repeat: int) -> Further:
    """Targets beyond the fair share, with a reservation."""
    seeds = 4 * repeat  # the totals of single runs differ by 2 %, and the effect is smaller
    words = ("plain", "agents", "reserved")
    sim = simulate(RESERVED, [f"{word}-{nrt}" for nrt in RESERVED_NRT for word in words], repeat=seeds)
    found = {"sim": {nrt: [Shares(sim, f"{word}-{nrt}") for word in words] for nrt in RESERVED_NRT}}
    if has_lab(PROXY, "nrt-40-reserved"):
        names = ("nrt-{}", "nrt-{}-agents", "nrt-{}-reserved")
        found["lab"] = {nrt: [Shares(lab_runs(PROXY), name.format(nrt)) for name in names] for nrt in LAB_NRT}
    captions = {"sim": "The simulator", "lab": "The lab: the sender is unchanged, and `wakeai proxy` carries its data over the air"}
    heads = ("without agents", "with agents", "with a reservation")
    columns = [f"AVR {head}" for head in heads] + ["the others' Jain then"]
    columns += [f"total {head}" for head in heads] + ["of that without agents"]
    return Further(
        shows="Figure 17 with a reservation",
        says="One of five stations has a target and four use Reno; agents, where there are any, run the law `airtime`. The fair share of "
        f"five is 20 % of the {ALONE_MBPS} Mbit/s of a station alone; at most 80 % of the air can be reserved. The aggregate goodput "
        "falls under `airtime` on 802.11g with a reservation as without one. Without agents the access point's queue overflows with "
        "ACKs, and the airtime of the lost ACKs carries segments instead. Where no queue is full, the ACK of every other segment takes "
        "airtime.",
        tables=[
            Table(["NRT", *columns], [reserved_row(nrt, of) for nrt, of in rows.items()], captions[world])
            for world, rows in found.items()
        ],
        commands=[command(RESERVED, "reserved-40", repeat=seeds), command(PROXY, "nrt-40-reserved", world="lab")],
        bounds=[bound for world, rows in found.items() for bound in bounds_of_reserved(world, rows)],
    )


class Shares:
    """What the station with the target reaches, and the others: means over the runs of a condition."""

    def __init__(self, result: wakeai.Result, condition: str) -> None:
        rows = flows(result, condition).sort("flow")
        self.avr = number(rows.filter(pl.col("flow") == 0)["avr"].mean())
        others = by_run(rows.filter(pl.col("flow") > 0))
        self.others_jain = average(jain(run["goodput_mbps"].to_list()) for run in others)
        self.total = mean(result, condition, "total_goodput_mbps")


def reserved_row(nrt: int, found: list[Shares]) -> list[Cell]:
    """The cells of a target."""
    totals = [one.total for one in found]
    part = f"{totals[2] / totals[0]:.1%}"
    return [f"{nrt} %", *(one.avr for one in found), found[2].others_jain, *totals, part]


def bounds_of_reserved(world: str, rows: dict[int, list[Shares]]) -> list[Bound]:
    """The bounds for targets up to twice the fair share."""
    kept = [found for nrt, found in rows.items() if nrt in PROMISED]
    least = {
        "AVR": min(found[2].avr for found in kept),
        "Jain's index of the others": min(found[2].others_jain for found in kept),
        "total goodput, of that without agents": min(found[2].total / found[0].total for found in kept),
        "total goodput, of that with agents and no reservation": min(found[2].total / found[1].total for found in kept),
    }
    return [at_least(f"reservations up to twice the fair share, {world}: {what}", 0.95, value) for what, value in least.items()]


def many(repeat: int) -> Further:
    """Several TCP-AV senders whose targets are more than the path carries."""
    conditions = {
        "wire-equal": "FIFO, equal targets",
        "wire-unequal": "FIFO, the last three want twice as much",
        "wire-beside-reno": "FIFO, the first two are Reno",
        "air-equal": "air, equal targets",
        "air-unequal": "air, the last three want twice as much",
        "air-beside-reno": "air, the first two are Reno",
    }
    result = simulate(MANY, list(conditions), repeat=repeat, solos=False)
    rows: list[list[Cell]] = []
    for condition, words in conditions.items():
        every = flows(result, condition)
        each = [number(every.filter(pl.col("flow") == flow)["goodput_mbps"].mean()) for flow in range(5)]
        groups = [number(one["jain"].mean()) for one in rows_of(result, "groups", condition).partition_by("group", maintain_order=True)]
        again = average(number(run["retransmits"].sum()) / (number(run["bytes"].sum()) / 1448) for run in by_run(every))
        whole = [mean(result, condition, column) for column in ("total_goodput_mbps", "jain")]
        rows.append([words, ", ".join(f"{mbps:.1f}" for mbps in each), *whole, *groups, f"{again:.4f}"])
    least = min(mean(result, condition, "jain") for condition, words in conditions.items() if words.endswith("equal targets"))
    return Further(
        shows="Five TCP-AV senders whose targets exceed the capacity",
        says="Five stations upload over 802.11n: through a FIFO of 20 Mbit/s with targets of 8 Mbit/s each, or 8 and 16; or with the air "
        "as the bottleneck and targets of 18 Mbit/s each, or 18 and 36. A timeout, or a round in which one segment of 32 was lost, "
        "lowers a sender's target by a quarter. The target recovers at the same rate for all, so the senders of one queue get the same "
        "share of their targets. In the air DCF decides: a station that always has something to send gets its turns and no more, "
        "whatever its target. Beside TCP-AV, Reno gets less in the FIFO; in the air it gets its own turns.",
        tables=[
            Table(["", "Mbit/s of each", "total", "Jain", "Jain of the first two", "of the last three", "retransmitted"], rows)
        ],
        commands=[command(MANY, "wire-unequal", repeat=repeat)],
        bounds=[at_least("TCP-AV: Jain's index of five with equal targets, together more than the path carries", 0.95, least)],
    )
