"""Matsuno et al.: two phones and two tablets behind 100 Mbit/s and 1 Gbit/s."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

import polars as pl
import wakeai
from wakeai.plots import COLOURS

import draw
from figure import Bound, Cell, Figure, Further, Paper, Table
from runs import TRIED, by_station, command, has_lab, lab_runs, mean, runs, simulate

UNEQUAL = "scenarios/matsuno-unequal.toml"
STATIONS = ("phone-fast", "phone", "tablet1", "tablet2")
WIRES = {"100 Mbit/s": "wire-100", "1 Gbit/s": "wire-1000"}
SEND_BUFFER = 1 << 20
AMSDU = 3_839
BUFFER = 1_024
AIR: dict[str, str | float] = {"access_point.ampdu": 1_048_575, "access_point.amsdu": AMSDU}
QUEUE: dict[str, str | float] = {"access_point.buffer": BUFFER}
TABLETS: dict[str, str | float] = {"stations.tablet.tcp": "linux-3.4"}
BUFFERS: dict[str, str | float] = {f"stations.{station}.send_buffer": SEND_BUFFER for station in ("phone-fast", "phone", "tablet")}
DEVICES: dict[str, str | float] = AIR | QUEUE | TABLETS | BUFFERS
"""What the paper's devices are known to have; all figures of the paper have it. `SOURCES` says from where."""
SOURCES = (
    "The devices of all figures are those of the paper, as far as sources tell. A-MPDUs up to 1,048,575 bytes and A-MSDUs: "
    "`gVhtAmpduLenExponent=7`, `gVhtMpduLen=2` in the Pixel 4's `WCNSS_qcom_cfg.ini` (device/google/coral), whose "
    "driver leaves the number of packets in an A-MSDU to the firmware (`gMaxAmsduNum`, 0 by default). "
    f"The A-MSDUs have {AMSDU:,} bytes, which every receiver of 802.11ac takes (802.11-2020 9.4.2.157.2). Send buffers end at "
    "1 MiB, what Android sets for Wi-Fi (`config_wifi_tcp_buffers`). The tablets, Nexus 7 of 2013, have Linux 3.4. The access point, "
    f"WSR-2533DHP2, has MediaTek's MT7622 and MT7615 (OpenWrt's `mt7622-buffalo-wsr-2533dhp2.dts`), whose driver `mt_wifi` holds {BUFFER:,} packets "
    "(`MAX_PACKETS_IN_QUEUE` in `rt_linux.h`, for 802.11ac); the middleware knows this number."
)


PORT_QUEUES = (20, 50, 100, 200)
MANY = 24
"""Seeds for what the middleware changes, which is little beside the scatter of single runs."""
CONDITIONS = [f"{wire}{end}" for wire in WIRES.values() for end in ("", "-shimada")]


def paper(repeat: int) -> Paper:
    """Makes the runs and the figures."""
    unequal = simulate(UNEQUAL, CONDITIONS, repeat=repeat, keys=DEVICES)
    many = simulate(UNEQUAL, CONDITIONS, repeat=MANY, keys=DEVICES, solos=False)
    recorded = simulate(UNEQUAL, CONDITIONS, repeat=1, records=True, keys=DEVICES)
    plain = simulate(UNEQUAL, [*CONDITIONS, *(f"{wire}-airtime" for wire in WIRES.values())], repeat=repeat)
    return Paper(
        short="Matsuno et al.",
        title="A Study of Communication Control Considering Wireless and WLANs on Android",
        figures=[
            alone(unequal, repeat),
            together(unequal, repeat),
            controlled(many, "100 Mbit/s", "figures 8 and 9", tried()),
            windows(recorded, "100 Mbit/s", "figures 10 to 17", [at_the_port()]),
            controlled(many, "1 Gbit/s", "figures 18 and 19"),
            windows(recorded, "1 Gbit/s", "figures 20 to 27"),
            capped("tablets", "scenarios/matsuno-slow-capped.toml", (10, 50, 100), repeat),
            capped("phones", "scenarios/matsuno-fast-capped.toml", (100, 500, 1000, 1500), repeat),
            normalised(unequal, repeat, "100 Mbit/s", "figure 32"),
            normalised(unequal, repeat, "1 Gbit/s", "figure 33"),
        ],
        not_made="Figures 1 to 3 and table 1 show the monitor, the middleware, the set-up and the devices. "
        "The codes of table 2 are those of our congestion events.",
        further=[two_worlds(plain, repeat)],
    )


def alone(unequal: wakeai.Result, repeat: int) -> Figure:
    """Figures 4 and 5."""
    most = {wire: by_station(unequal, condition, "max_mbps") for wire, condition in WIRES.items()}
    drawing, (axes,) = draw.panels(1)
    draw.bars(axes, most)
    draw.finish(axes, "each station alone", "", "goodput, Mbit/s")
    ratio = most["1 Gbit/s"]["phone"] / most["1 Gbit/s"]["tablet1"]
    return Figure(
        name="figures 4 and 5",
        shows="Goodput of each device alone",
        paper="Pictures. At 1 Gbit/s the slower phone reaches about ten times what a tablet reaches.",
        ours=f"It reaches {ratio:.1f} times what a tablet reaches.",
        agrees=7 < ratio < 13,
        deviation=f"{SOURCES} The rates of the scenario are those that the devices' standards and antennas allow; the paper's "
        "distances and rates are not known.",
        command=command(UNEQUAL, "wire-1000", repeat=repeat, keys=DEVICES),
        columns=["wire", *STATIONS],
        rows=[[wire, *(found[station] for station in STATIONS)] for wire, found in most.items()],
        drawing=drawing,
    )


def together(unequal: wakeai.Result, repeat: int) -> Figure:
    """Figures 6 and 7."""
    found = {wire: by_station(unequal, condition) for wire, condition in WIRES.items()}
    gaps = {
        wire: (one["phone-fast"] + one["phone"]) / (one["tablet1"] + one["tablet2"])
        for wire, one in found.items()
    }
    drawing, (axes,) = draw.panels(1)
    draw.bars(axes, found)
    draw.finish(axes, "four at once, no control", "", "goodput, Mbit/s")
    slow, fast = gaps["100 Mbit/s"], gaps["1 Gbit/s"]
    return Figure(
        name="figures 6 and 7",
        shows="Goodput of four devices at once",
        paper="Pictures. On both wires the phones get more than the tablets, and at 1 Gbit/s the gap is wider.",
        ours=f"The phones get {slow:.2f} times what the tablets get at 100 Mbit/s, and {fast:.2f} times at 1 Gbit/s.",
        agrees=1 < slow < fast,
        deviation="None. The gap depends on the phones' aggregates, because contention gives every station equally many turns.",
        command=command(UNEQUAL, "wire-1000", repeat=repeat, keys=DEVICES),
        columns=["wire", *STATIONS, "phones : tablets"],
        rows=[[wire, *(one[station] for station in STATIONS), gaps[wire]] for wire, one in found.items()],
        drawing=drawing,
    )


def controlled(unequal: wakeai.Result, wire: str, name: str, more: Sequence[Table] = ()) -> Figure:
    """Figures 8 and 9, or 18 and 19."""
    default = WIRES[wire]
    middleware = f"{default}-shimada"
    totals = [mean(unequal, condition, "total_goodput_mbps") for condition in (default, middleware)]
    indices = [mean(unequal, condition, "jain") for condition in (default, middleware)]
    scatter = [error_of_difference(unequal, default, middleware, column) for column in ("total_goodput_mbps", "jain")]
    drawing, (left, right) = draw.panels(2)
    names = {"no control": default, "middleware": middleware}
    draw.bars(left, {label: by_station(unequal, condition) for label, condition in names.items()})
    draw.finish(left, f"four at once, {wire}", "", "goodput, Mbit/s")
    draw.scatter(right, {label: points(unequal, condition, "jain") for label, condition in names.items()})
    draw.finish(right, "each run", "aggregate goodput, Mbit/s", "Jain's index", bottom=None)
    if wire == "100 Mbit/s":
        statement = "The middleware makes the shares more even, and raises both the aggregate goodput and Jain's index."
        agrees = totals[1] > totals[0] and indices[1] > indices[0]
    else:
        statement = "The middleware changes neither the aggregate goodput nor Jain's index."
        agrees = abs(totals[1] / totals[0] - 1) < 0.05 and abs(indices[1] - indices[0]) < 0.05
    return Figure(
        name=name,
        shows=f"The middleware at {wire}",
        paper=f"Pictures. {statement}",
        ours=f"In {MANY} seeds the aggregate goodput goes from {totals[0]:.1f} to {totals[1]:.1f} Mbit/s (standard error of the difference "
        f"{scatter[0]:.1f}), Jain's index from {indices[0]:.3f} to {indices[1]:.3f} ({scatter[1]:.3f}).",
        agrees=agrees,
        deviation="The bounds of the law follow from the access point's buffer. With 300 packets, which an access point of the TCP-AV study held, the "
        "ceilings are lower than what the path carries, so the fast phones lose goodput; with the buffer of the paper's access point they change little. At 100 Mbit/s the difference in goodput cannot be told from zero, and the paper's pictures show more. "
        "The paper does not say which bounds its middleware had set, nor how far its phones were from filling the path. "
        "What was tried is in the table below figures 8 and 9.",
        command=command(UNEQUAL, middleware, repeat=MANY, keys=DEVICES),
        columns=["condition", *STATIONS, "total", "Jain"],
        rows=[
            [
                label,
                *by_station(unequal, condition).values(),
                mean(unequal, condition, "total_goodput_mbps"),
                mean(unequal, condition, "jain"),
            ]
            for label, condition in names.items()
        ],
        drawing=drawing,
        more=more,
    )


def error_of_difference(result: wakeai.Result, one: str, other: str, column: str) -> float:
    """The standard error of the mean difference between two conditions with the same seeds."""
    first, second = (runs(result, name)[column].to_list() for name in (one, other))
    differences = [float(later - earlier) for earlier, later in zip(first, second, strict=True)]
    return statistics.stdev(differences) / math.sqrt(len(differences))


def tried() -> list[Table]:
    """What was tried for figures 8, 9, 18, 19, 32 and 33, one at a time and together."""
    queue: dict[str, str | float] = {f"stations.{phone}.host_queue": "tsq" for phone in ("phone-fast", "phone")}
    no_candidate: dict[str, str | float] = {f"stations.{station}.announces.rate": "100Gbit/s" for station in ("phone-fast", "phone", "tablet")}
    ports: dict[str, dict[str, str | float]] = {f"a port of {packets} packets": DEVICES | {"wired.queue": packets} for packets in PORT_QUEUES}
    amsdus = {f"A-MSDUs of {size} bytes": DEVICES | {"access_point.amsdu": size} for size in (7_935, 11_424)}
    fewer = "all these, 300 packets in the access point"
    runs_of: dict[str, Mapping[str, str | float]] = {
        "nothing": {},
        "A-MPDUs of 1 MB": {"access_point.ampdu": AIR["access_point.ampdu"]},
        "these, and A-MSDUs": AIR,
        f"{BUFFER:,} packets in the access point": QUEUE,
        "Linux 3.4 on the tablets": TABLETS,
        "send buffers of 1 MiB": BUFFERS,
        "all these": DEVICES,
        fewer: DEVICES | {"access_point.buffer": 300},
        "all these, 2,048 packets in the access point": DEVICES | {"access_point.buffer": 2_048},
        **{f"all these, {label}": keys for label, keys in amsdus.items()},
        **{f"all these, {label}": keys for label, keys in ports.items()},
        "all these, small queues in the phones": DEVICES | queue,
        "all these, the law without candidate 1": DEVICES | no_candidate,
        "all these, 0.1% of the packets lost": DEVICES | {"wired.loss": 0.001},
        "all these, the first 10 s": DEVICES | {"duration": "10s", "warmup": "0s"},
    }
    normalised_too = {"nothing", "these, and A-MSDUs", "all these", fewer, *(f"all these, {label}" for label in (*amsdus, *ports))}
    rows: list[list[Cell]] = []
    for label, keys in runs_of.items():
        alone = label in normalised_too  # running each station alone takes as long as the runs themselves
        result = simulate(UNEQUAL, CONDITIONS, repeat=TRIED, keys=keys, solos=alone)
        row: list[Cell] = [label]
        for wire in WIRES.values():
            pair = (wire, f"{wire}-shimada")
            for column in ("total_goodput_mbps", "jain", "capacity_normalised"):
                known = alone or column != "capacity_normalised"
                row.append(" → ".join(shown(mean(result, condition, column), column) for condition in pair) if known else None)
        rows.append([*row, " ".join(f"--set {key}={value}" for key, value in keys.items()) or "–"])
    heads = [f"{wire}: {what}" for wire in WIRES for what in ("total", "Jain", "capacity-normalised")]
    return [
        Table(
            ["switched on", *heads, "keys of the command"],
            rows,
            f"What was tried, {TRIED} seeds, no control → middleware (figures 8, 9, 18, 19, 32 and 33). The command is that of the figure "
            "with the keys of the row instead of its own, and `--conditions wire-100,wire-100-shimada,wire-1000,wire-1000-shimada`",
        )
    ]


def shown(value: float, column: str) -> str:
    """A figure as the table of what was tried shows it."""
    return f"{value:.1f}" if column == "total_goodput_mbps" else f"{value:.3f}"


def points(result: wakeai.Result, condition: str, column: str) -> tuple[list[float], list[float]]:
    """Aggregate goodput and an index of each run."""
    rows = runs(result, condition)
    return rows["total_goodput_mbps"].to_list(), rows[column].to_list()


PORTS = (
    " At 100 Mbit/s the paper's windows without control stayed small, so there the floor raised them. A queue of few packets for the "
    "port of 100 Mbit/s (the paper has a switch of this rate) keeps ours small, too: the second table. With 50 to 100 packets windows and "
    "congestion events rise under the middleware, as in the paper, and so do aggregate goodput and Jain's index (the table below figures 8 "
    "and 9). It is not counted, because without control the tablets then get more than the phones, unlike in figures 6 and 7."
)


def at_the_port() -> Table:
    """What a queue of few packets for the port of 100 Mbit/s does to figures 10 to 17."""
    names = ("wire-100", "wire-100-shimada")
    rows: list[list[Cell]] = []
    for packets in PORT_QUEUES:
        result = simulate(UNEQUAL, names, repeat=1, records=True, keys=DEVICES | {"wired.queue": packets}, solos=False)
        samples, events = result.to_polars("samples"), result.to_polars("events").filter(pl.col("event") == "error")
        means = {name: samples.filter(pl.col("condition") == name).group_by("station", maintain_order=True).agg(pl.mean("cwnd"))["cwnd"].sum() for name in names}
        row: list[Cell] = [packets, *(float(means[name]) for name in names)]
        row += [len(events.filter(pl.col("condition") == name)) for name in names]
        found = by_station(result, names[0])
        rows.append([*row, found["phone-fast"] + found["phone"], found["tablet1"] + found["tablet2"]])
    heads = ("windows without control, segments", "with the middleware", "events without control", "with", "phones without control, Mbit/s", "tablets")
    return Table(["packets", *heads], rows, "A queue of few packets for the port of 100 Mbit/s, seed 1: `--set wired.queue=…` in addition")


def windows(recorded: wakeai.Result, wire: str, name: str, ports: Sequence[Table] = ()) -> Figure:
    """Figures 10 to 17, or 20 to 27."""
    names = {"no control": WIRES[wire], "middleware": f"{WIRES[wire]}-shimada"}
    samples = recorded.to_polars("samples").with_columns(at_s=pl.col("at_ns") / 1e9)
    errors = recorded.to_polars("events").filter(pl.col("event") == "error").with_columns(at_s=pl.col("at_ns") / 1e9)
    drawing, places = draw.panels(2, len(STATIONS))
    rows: list[list[str | float]] = []
    sums = {label: [0.0, 0.0] for label in names}
    for index, station in enumerate(STATIONS):
        row: list[str | float] = [station]
        for column, (label, condition) in enumerate(names.items()):
            own = (pl.col("condition") == condition) & (pl.col("station") == station)
            window, found = samples.filter(own), errors.filter(own)
            axes = places[2 * index + column]
            axes.plot(window["at_s"], window["cwnd"], color=COLOURS[0], linewidth=0.9)
            axes.scatter(found["at_s"], found["cwnd"], color=COLOURS[1], marker="x", s=14)
            draw.finish(axes, f"{station}, {label}", "time, s", "cwnd, segments")
            average = float(window.select(pl.mean("cwnd")).item())
            row += [average, len(found)]
            sums[label][0] += average
            sums[label][1] += len(found)
        rows.append(row)
    (before, errors_before), (after, errors_after) = sums.values()
    if wire == "100 Mbit/s":
        statement = "With the middleware all windows are far larger, and there are many more congestion events."
        agrees = after > before and errors_after > errors_before
    else:
        statement = "The curves with and without the middleware hardly differ."
        agrees = abs(after / before - 1) < 0.2
    return Figure(
        name=name,
        shows=f"Congestion window and congestion events over time at {wire}, seed 1",
        paper=f"Pictures. {statement}",
        ours=f"The mean windows of the four sum to {before:.0f} segments without control and {after:.0f} with the middleware; "
        f"there are {errors_before:.0f} and {errors_after:.0f} congestion events (crosses).",
        agrees=agrees,
        deviation="The middleware of these runs holds the windows between the floor and the ceiling of Shimada et al., table 1. "
        f"Without control CUBIC's windows grow until a queue is full, at both rates.{PORTS if ports else ''}",
        command=command(UNEQUAL, f"{WIRES[wire]}-shimada", repeat=1, records=True, keys=DEVICES),
        columns=["station", "mean cwnd, no control", "events", "mean cwnd, middleware", "events"],
        rows=rows,
        more=ports,
        drawing=drawing,
    )


def capped(which: str, scenario: str, caps: tuple[int, ...], repeat: int) -> Figure:
    """Figures 28 and 29, or 30 and 31."""
    conditions = ["default", "shimada-after", *(f"{which}-{cap}" for cap in caps)]
    keys = {key: value for key, value in DEVICES.items() if "phone-fast" not in key}
    result = simulate(scenario, conditions, repeat=repeat, keys=keys)
    totals = [mean(result, condition, "total_goodput_mbps") for condition in conditions]
    indices = [mean(result, condition, "jain") for condition in conditions]
    drawing, (axes,) = draw.panels(1)
    draw.scatter(axes, {condition: points(result, condition, "jain") for condition in conditions})
    draw.finish(axes, f"windows of the {which} held", "aggregate goodput, Mbit/s", "Jain's index", bottom=None)
    tightest = conditions.index(f"{which}-{min(caps)}")
    if which == "tablets":
        name, statement = "figures 28 and 29", "the aggregate goodput rises, and Jain's index falls towards 0.5"
        agrees = totals[tightest] > totals[0] and indices[tightest] < 0.65
    else:
        name, statement = "figures 30 and 31", "Jain's index rises, and the aggregate goodput falls"
        agrees = totals[tightest] < totals[0] and indices[tightest] > indices[0]
    return Figure(
        name=name,
        shows=f"The windows of the {which} held at {', '.join(map(str, caps))} segments, 1 Gbit/s",
        paper=f"Pictures. The lower the windows of the {which}, the more {statement}.",
        ours=f"With {min(caps)} segments the aggregate goodput goes from {totals[0]:.1f} to {totals[tightest]:.1f} Mbit/s, "
        f"Jain's index from {indices[0]:.3f} to {indices[tightest]:.3f}.",
        agrees=agrees,
        deviation="Both move in the paper's direction." if agrees else "One of the two does not move as in the paper.",
        command=command(scenario, f"{which}-{min(caps)}", repeat=repeat, keys=keys),
        columns=["condition", "aggregate goodput, Mbit/s", "Jain"],
        rows=[list(row) for row in zip(conditions, totals, indices, strict=True)],
        drawing=drawing,
    )


def normalised(unequal: wakeai.Result, repeat: int, wire: str, name: str) -> Figure:
    """Figures 32 and 33."""
    names = {"no control": WIRES[wire], "middleware": f"{WIRES[wire]}-shimada"}
    drawing, (axes,) = draw.panels(1)
    groups = {
        f"{label}, {index}": points(unequal, condition, column)
        for label, condition in names.items()
        for index, column in (("Jain", "jain"), ("capacity-normalised", "capacity_normalised"))
    }
    draw.scatter(axes, groups)
    draw.finish(axes, wire, "aggregate goodput, Mbit/s", "index", bottom=None)
    default, middleware = (mean(unequal, condition, "capacity_normalised") for condition in names.values())
    jain = mean(unequal, WIRES[wire], "jain")
    if wire == "100 Mbit/s":
        statement, agrees = "lower with the middleware than without", middleware < default
        deviation = (
            "The middleware makes the parts that the stations have of what they reach alone a little more even. With 300 packets in "
            "the access point the index falls, as in the paper (the table below figures 8 and 9), but then figures 8, 9 and 18 to 27 do not agree."
        )
        ours = f"It is {default:.3f} without and {middleware:.3f} with the middleware."
    else:
        statement, agrees = "far higher than Jain's index, which is about the middle of the scale", default > jain
        ours = f"It is {default:.3f}, and Jain's index is {jain:.3f}."
        deviation = (
            "Contention gives all equally many turns, so shares are in proportion to what each reaches alone as far as the turns "
            "take the same airtime: the phones have to send aggregates as long as the tablets'. With the longest A-MPDUs of "
            "802.11ac and A-MSDUs in them they nearly do, with any size of A-MSDUs (the table below figures 8 and 9). Without "
            "A-MSDUs an A-MPDU ends with its 64 frames, and the index stays below Jain's."
        )
    return Figure(
        name=name,
        shows=f"The capacity-normalised index at {wire}",
        paper=f"Pictures. The capacity-normalised index is {statement}.",
        ours=ours,
        agrees=agrees,
        deviation=deviation,
        command=command(UNEQUAL, WIRES[wire], repeat=repeat, keys=DEVICES),
        columns=["condition", "Jain", "capacity-normalised"],
        rows=[
            [
                label,
                mean(unequal, condition, "jain"),
                mean(unequal, condition, "capacity_normalised"),
            ]
            for label, condition in names.items()
        ],
        drawing=drawing,
    )


def two_worlds(unequal: wakeai.Result, repeat: int) -> Further:
    """Section 7.2: all laws, in the simulator and in the lab."""
    longer = {"access_point.ampdu": 1_048_575}
    worlds = {"sim": unequal, "lab": lab_runs(UNEQUAL)}
    alone: list[list[Cell]] = []
    together: list[list[Cell]] = []
    bounds = []
    for wire in WIRES.values():
        made = {world: result for world, result in worlds.items() if world == "sim" or has_lab(UNEQUAL, wire)}
        alone += [[wire, world, *by_station(result, wire, "max_mbps").values()] for world, result in made.items()]
        for condition in (wire, f"{wire}-shimada", f"{wire}-airtime"):
            made = {world: result for world, result in worlds.items() if world == "sim" or has_lab(UNEQUAL, condition)}
            together += [row(condition, world, result) for world, result in made.items()]
    with_longer = simulate(UNEQUAL, [WIRES["1 Gbit/s"]], repeat=repeat, keys=longer)
    together.append(["wire-1000, A-MPDU 1 MB", *row(WIRES["1 Gbit/s"], "sim", with_longer)[1:]])
    for world, result in worlds.items():
        if world == "sim" or has_lab(UNEQUAL, "wire-100-shimada"):
            bounds += bounds_of(world, result)
    heads = ["condition", "world", *STATIONS]
    return Further(
        shows="Sections 3 and 7.2 under all laws, in the simulator and in the lab",
        says="Two phones (802.11ac, 780 and 585 Mbit/s) and two tablets (802.11n, 52 Mbit/s) upload over a wire of 100 Mbit/s and over "
        "one of 1 Gbit/s. These runs have the scenario as it is, in the lab as in the simulator: A-MPDUs of 65,535 bytes and no A-MSDUs. "
        "Contention gives every uploading station equally many turns; a tablet's aggregate takes up to 5.4 ms of air (the longest "
        "PPDU), a phone's 0.7 ms (65,535 bytes at 780 Mbit/s), so the tablets get most of the air. With 64 frames in the phones' "
        "aggregates (the last row) the index rises.",
        tables=[
            Table(heads, alone, "One station alone, Mbit/s"),
            Table([*heads, "total", "Jain", "capacity-normalised", "mean utilisation"], together, "Four at once, Mbit/s"),
        ],
        commands=[
            command(UNEQUAL, "wire-100-shimada", repeat=repeat),
            command(UNEQUAL, "wire-1000", repeat=repeat, keys=longer),
            command(UNEQUAL, "wire-100-shimada", world="lab"),
        ],
        bounds=bounds,
    )


def row(condition: str, world: str, result: wakeai.Result) -> list[Cell]:
    """The goodput of each station, and the indices."""
    columns = ("total_goodput_mbps", "jain", "capacity_normalised", "mean_utilisation")
    return [condition, world, *by_station(result, condition).values(), *(mean(result, condition, one) for one in columns)]


def bounds_of(world: str, result: wakeai.Result) -> list[Bound]:
    """The bounds on the capacity-normalised index of section 7.2."""
    plain, middleware, fast = (
        mean(result, condition, "capacity_normalised") for condition in ("wire-100", "wire-100-shimada", "wire-1000")
    )
    what = f"section 7.2, {world}: capacity-normalised index"
    found = f"{plain:.3f} without, {middleware:.3f} with"
    return [
        Bound(f"{what} at 100 Mbit/s", "is lower with the middleware", found, middleware < plain),
        Bound(f"{what} at 1 Gbit/s", "high without control (0.9 or more)", f"{fast:.3f}", fast >= 0.9),
    ]
