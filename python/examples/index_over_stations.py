"""Jain's index over the number of stations, by law: python index_over_stations.py SCHEDULER [STATIONS [SEEDS]]"""

import sys

import polars as pl
import wakeai
from distributed import Client

most, seeds = (int(text) for text in [*sys.argv[2:], "40", "10"][:2])
with Client(sys.argv[1]) as client:
    counts = {"stations.tablet.count": range(1, most + 1)}
    grid = wakeai.grid("scenarios/quickstart.toml", counts, repeat=seeds, client=client)
means = grid.to_polars("runs").group_by("stations.tablet.count", "condition", maintain_order=True).agg(pl.mean("jain"))
with pl.Config(tbl_rows=-1):
    print(means.pivot("condition", index="stations.tablet.count", values="jain"))
