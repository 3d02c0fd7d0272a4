"""Draws Jain's index over the number of stations, by law: index_over_stations.py SCHEDULER FILE [STATIONS [SEEDS]]"""

import sys

import wakeai
from distributed import Client
from matplotlib import pyplot
from wakeai import plots

most = int(sys.argv[3]) if len(sys.argv) > 3 else 40
seeds = int(sys.argv[4]) if len(sys.argv) > 4 else 10
with Client(sys.argv[1]) as client:
    counts = {"stations.tablet.count": range(1, most + 1)}
    grid = wakeai.grid("scenarios/quickstart.toml", counts, repeat=seeds, client=client)
plots.over(grid, "stations.tablet.count", label="stations")
pyplot.savefig(sys.argv[2])
