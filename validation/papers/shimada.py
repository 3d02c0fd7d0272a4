"""Shimada et al.: the middleware's law before and after its change, over a WLAN and over LTE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl
import wakeai
from wakeai.plots import COLOURS

import draw
from figure import Bound, Cell, Figure, Further, Paper, Table
from runs import TRIED, change, command, group, mean, number, simulate

LTE_CONDITIONS = ("default", "shimada-before", "shimada-after", "airtime")
WLAN = "scenarios/shimada-wlan-512ms.toml"
MIXED = "scenarios/shimada-mixed.toml"
PHONES, LTE = "scenarios/lte.toml", "scenarios/lte-mixed.toml"
WIRE_MS = 40
"""The round-trip time of the cellular scenarios' wire. What is above it is queueing delay."""
LAWS = {"before": "shimada-before", "after": "shimada-after"}
KERNEL = "linux-3.4"
"""The kernel of the paper's phones and tablets, Nexus 5 and Nexus 7: Android's branches `hammerhead` and `flo` of Linux."""
LOSSES = (0.001, 0.0015, 0.002, 0.005, 0.01)
"""The shares of packets that the path of 512 ms loses, as far as the figures of the WLAN are counted."""
TEN: dict[str, str | float] = {"duration": "10s", "warmup": "0s"}
"""What iperf measures where it is not told for how long."""
PLACE = (
    "The paper does not say how many packets were lost on its path, which leads over the radio and through dummynet. A path without "
    "losses is full without control once slow start has ended, and then no law can carry more (the first row). So the share of lost packets is swept: the figure counts "
    f"because it agrees with each one from {min(LOSSES):.1%} to {max(LOSSES):.0%}. The gains of the paper, in both figures of the WLAN, are about "
    f"those with {LOSSES[0]:.1%} to {LOSSES[1]:.2%}."
)


def paper(repeat: int) -> Paper:
    """Makes the runs and the figures."""
    mixed = simulate(LTE, LTE_CONDITIONS, repeat=repeat, keys=kernel("phone"))
    return Paper(
        short="Shimada et al.",
        title="Performance Evaluation of Backlog Control Middleware in WLAN and LTE Networks with Multiple Android "
        "Terminals",
        figures=[window(), throughput(repeat), loaded(repeat), cellular(mixed, repeat)],
        not_made="Figures 1, 3 and 4 show the set-ups. Table 1 defines the law, which is ours (`shimada-before`, "
        "`shimada-after`); tests of the laws hold each of its values.",
        further=[all_laws(mixed, repeat)],
    )


def kernel(*groups: str) -> dict[str, str | float]:
    """The keys that give groups of stations the kernel of the paper's devices."""
    return {f"stations.{group}.tcp": KERNEL for group in groups}


def losing(loss: float) -> dict[str, str | float]:
    """The keys that make the path lose this share of its packets."""
    return {"wired.loss": loss} if loss else {}


def window() -> Figure:
    """Figure 2."""
    found: dict[float, dict[str, float]] = {}
    drawing, places = draw.panels(2, sharey=True)
    for loss in (0.0, *LOSSES):
        keys = kernel("nexus") | losing(loss)
        result = simulate(WLAN, list(LAWS.values()), repeat=1, records=True, keys=keys)
        found[loss] = {}
        for axes, (label, condition) in zip(places, LAWS.items(), strict=True):
            rows = result.to_polars("samples").filter(pl.col("condition") == condition)
            found[loss][label] = number(rows.group_by("station", maintain_order=True).agg(pl.mean("cwnd"))["cwnd"].mean())
            if loss == LOSSES[0]:
                one = rows.filter(pl.col("station") == "nexus1")
                axes.plot(one["at_ns"] / 1e9, one["cwnd"], color=COLOURS[0])
                draw.finish(axes, f"one station, {label} the change", "time, s", "cwnd, segments")
    shown = found[LOSSES[0]]
    return Figure(
        name="figure 2",
        shows="The congestion window under the law before and after its change, 512 ms",
        paper="A picture. The changed law holds the window less tightly, so the window is larger.",
        ours=f"The mean window of the six stations is {shown['before']:.0f} segments before and {shown['after']:.0f} "
        f"after the change, where {LOSSES[0]:.1%} of the packets are lost.",
        agrees=all(found[loss]["after"] > found[loss]["before"] for loss in LOSSES),
        deviation="The direction agrees. The curves of single stations depend on when packets are lost, and are not compared.",
        command=command(WLAN, LAWS["after"], repeat=1, records=True, keys=kernel("nexus") | losing(LOSSES[0])),
        columns=["lost", "mean window before the change, segments", "after"],
        rows=[[f"{loss:.2%}", *each.values()] for loss, each in found.items()],
        drawing=drawing,
    )


@dataclass(frozen=True)
class Swept:
    """The aggregate goodput without control and under both laws, Mbit/s, and what the laws gain."""

    default: float
    before: float
    after: float

    @property
    def gains(self) -> tuple[float, float, float]:
        """Of the law before over no control, of the law after over no control, and of the law after over the law before."""
        return self.before / self.default - 1, self.after / self.default - 1, self.after / self.before - 1

    @property
    def cells(self) -> list[Cell]:
        """The cells of a table's row."""
        return [self.default, self.before, self.after, *(f"{gain:+.1%}" for gain in self.gains)]


HEADS = ("no control, Mbit/s", "law before", "law after", "before over none", "after over none", "after over before")


def swept(scenario: str, keys: Mapping[str, str | float], repeat: int) -> Swept:
    """Runs a scenario without control and under both laws."""
    conditions = ["default", *LAWS.values()]
    result = simulate(scenario, conditions, repeat=repeat, keys=keys)
    return Swept(*(mean(result, condition, "total_goodput_mbps") for condition in conditions))


def throughput(repeat: int) -> Figure:
    """Section 4."""
    found = {loss: swept(WLAN, kernel("nexus") | losing(loss), repeat) for loss in (0.0, *LOSSES)}
    _, over_default, over_before = found[LOSSES[0]].gains
    return Figure(
        name="section 4",
        shows="Aggregate goodput of six stations at 512 ms",
        paper="The changed law gives up to 39 % more than the law before, and up to 113 % more than no control.",
        ours=f"Where {LOSSES[0]:.1%} of the packets are lost, the changed law gives {over_before:+.0%} over the law before, and "
        f"{over_default:+.0%} over no control.",
        agrees=all(gain > 0.1 for loss in LOSSES for gain in found[loss].gains[1:]),
        deviation=f"The signs are compared, because the paper gives the largest gains that it saw. {PLACE} After a loss CUBIC takes "
        "many round-trip times of 512 ms to grow again, and the floors of the laws hold the windows up. The paper names ACKs that pile up "
        "in the access point as the cause of its loss of goodput. Without losses ours drops ACKs, too, but later ACKs cover them. The second table has what else was "
        "tried, among it queues of few packets in the hosts and damaged frames, which would explain this figure as well.",
        command=command(WLAN, "shimada-after", repeat=repeat, keys=kernel("nexus") | losing(LOSSES[0])),
        columns=["lost", *HEADS],
        rows=[[f"{loss:.2%}", *each.cells] for loss, each in found.items()],
        more=[tried(WLAN, ("nexus",))],
    )


def loaded(repeat: int) -> Figure:
    """Section 5, WLAN."""
    devices = kernel("phone", "load")
    found = {loss: swept(MIXED, devices | losing(loss), repeat) for loss in (0.0, *LOSSES)}
    return Figure(
        name="section 5, WLAN",
        shows="Aggregate goodput beside six stations without an agent",
        paper="The law before the change gives up to 43 % more in all.",
        ours=f"Where {LOSSES[0]:.1%} of the packets are lost, it gives {found[LOSSES[0]].gains[0]:+.0%}.",
        agrees=all(found[loss].gains[0] > 0.05 for loss in LOSSES),
        deviation=f"{PLACE} Twelve stations fill a path without losses with and without control: what the stations with agents do not "
        "take, the others get. Queues of few packets and damaged frames would explain this figure as well (the second table).",
        command=command(MIXED, "shimada-before", repeat=repeat, keys=devices | losing(LOSSES[0])),
        columns=["lost", *HEADS],
        rows=[[f"{loss:.2%}", *each.cells] for loss, each in found.items()],
        more=[tried(MIXED, ("phone", "load"))],
    )


def tried(scenario: str, groups: tuple[str, ...]) -> Table:
    """What else was tried for the aggregate goodput, one at a time and together."""
    time = kernel(*groups)
    buffers: dict[str, str | float] = {f"stations.{name}.send_buffer": 1 << 20 for name in groups}
    all_of = time | buffers | TEN
    queues = {packets: {f"stations.{name}.queue": packets for name in groups} for packets in (20, 50, 100, 200)}
    errors = {share: {f"stations.{name}.frame_error_rate": share for name in groups} for share in (0.2, 0.3, 0.4)}
    runs_of: dict[str, Mapping[str, str | float]] = {
        "the first 10 s": TEN,
        "Linux 3.4": time,
        "send buffers of 1 MiB": buffers,
        "all these": all_of,
        "all these, 20 s": all_of | {"duration": "20s"},
        "all these, 40 MHz": all_of | {"access_point.width": "40MHz"},
        "all these, guard interval of 400 ns": all_of | {"access_point.guard_interval": "400ns"},
        "all these, 802.11ac": all_of | {"access_point.standard": "802.11ac"},
        "all these, A-MSDUs": all_of | {"access_point.amsdu": 3_839},
        "all these, 100 packets in the access point": all_of | {"access_point.buffer": 100},
        "all these, 1000 packets in the access point": all_of | {"access_point.buffer": 1_000},
        **{f"Linux 3.4, queues of {packets} packets in the hosts": time | keys for packets, keys in queues.items()},
        **{f"Linux 3.4, {share:.0%} of the frames damaged": time | keys for share, keys in errors.items()},
    }
    rows = [
        [label, *swept(scenario, keys, TRIED).cells, " ".join(f"--set {key}={value}" for key, value in keys.items())]
        for label, keys in runs_of.items()
    ]
    return Table(
        ["switched on", *HEADS, "keys of the command"],
        rows,
        f"What else was tried, {TRIED} seeds; the command is that of the figure, with the keys of the row instead of its own and the "
        "conditions of the three columns",
    )


def cellular(result: wakeai.Result, repeat: int) -> Figure:
    """Section 5, LTE."""
    conditions = ["default", "shimada-before"]
    medians = {condition: group(result, condition, "phone", "rtt_ms_p50") for condition in conditions}
    return Figure(
        name="section 5, LTE",
        shows="Round-trip time of six phones with agents beside six PCs over a cellular link",
        paper="The windows are held, and the round-trip time falls. No throughput is given.",
        ours=f"The phones' median goes from {medians['default']:.0f} to {medians['shimada-before']:.0f} ms.",
        agrees=medians["shimada-before"] < medians["default"],
        deviation="The direction agrees. The link is modelled with a proportionally fair scheduler and a queue for each "
        "station; the paper's base station is not described.",
        command=command(LTE, "shimada-before", repeat=repeat, keys=kernel("phone")),
        columns=["condition", "phones, RTT p50, ms", "p95, ms", "phones, Mbit/s", "PCs, Mbit/s"],
        rows=[
            [
                condition,
                medians[condition],
                group(result, condition, "phone", "rtt_ms_p95"),
                group(result, condition, "phone"),
                group(result, condition, "pc"),
            ]
            for condition in conditions
        ],
    )


def all_laws(mixed: wakeai.Result, repeat: int) -> Further:
    """The cellular links under all laws."""
    phones = simulate(PHONES, LTE_CONDITIONS, repeat=repeat, keys=kernel("phone"))
    names = ("total_goodput_mbps", "rtt_ms_p50", "rtt_ms_p95")
    tables = {
        "Six phones with agents": {one: tuple(mean(phones, one, name) for name in names) for one in LTE_CONDITIONS},
        "Six phones with agents beside six PCs without: the phones": of_group(mixed, "phone"),
        "The PCs": of_group(mixed, "pc"),
    }
    (goodput, _, p95), (ours, _, ours_p95) = (tables["Six phones with agents"][one] for one in ("default", "airtime"))
    delay = (ours_p95 - WIRE_MS) / (p95 - WIRE_MS)
    return Further(
        shows="Section 5, LTE, under all laws",
        says="Stations upload over a cellular link of 50 Mbit/s. It has no broadcast, so the agents know of no peers. The queueing delay "
        f"(the paper's RTT growth) is the part of the round-trip time above the wire's {WIRE_MS} ms. The phones have Linux 3.4.",
        tables=[
            Table(
                ["condition", "goodput, Mbit/s", "of default", "RTT p50, ms", "RTT p95, ms", "p95 queueing delay / default's"],
                [cellular_row(condition, found) for condition in found],
                caption,
            )
            for caption, found in tables.items()
        ],
        commands=[f"wakeai sim {scenario} --set stations.phone.tcp={KERNEL} --repeat {repeat}" for scenario in (PHONES, LTE)],
        bounds=[
            Bound(
                "`airtime` without peers on a cellular link",
                "97 % of the goodput, less than half of the p95 queueing delay",
                f"{ours / goodput:.1%} of the goodput, {delay:.3f} of the queueing delay",
                ours / goodput >= 0.97 and delay < 0.5,
            )
        ],
    )


def of_group(result: wakeai.Result, name: str) -> dict[str, tuple[float, ...]]:
    """The goodput and the RTT of a group of stations under each condition."""
    columns = ("goodput_mbps", "rtt_ms_p50", "rtt_ms_p95")
    return {one: tuple(group(result, one, name, column) for column in columns) for one in LTE_CONDITIONS}


def cellular_row(condition: str, found: dict[str, tuple[float, ...]]) -> list[Cell]:
    """The figures of a condition, and those beside `default`."""
    (goodput, median, p95), default = found[condition], found["default"]
    delay = (p95 - WIRE_MS) / (default[2] - WIRE_MS)
    return [condition, goodput, change(goodput, default[0]), median, p95, delay]
