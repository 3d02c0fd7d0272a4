"""Runs, their tables, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import polars
import pyarrow
import pytest
import wakeai

from .conftest import PATIENCE, ROOT


def test_the_tables_have_the_figures_of_the_report(scenario: wakeai.Scenario) -> None:
    result = wakeai.run(scenario, repeat=2, seed=5)
    runs = result.to_polars("runs")
    report = result.report["runs"]
    assert runs["condition"].to_list() == ["default", "default", "airtime", "airtime"]
    assert runs["seed"].to_list() == [5, 6, 5, 6]
    assert runs["jain"].to_list() == [run["jain"] for run in report]
    assert runs["rtt_ms_p95"].to_list() == [run["rtt_ms"]["p95"] for run in report]
    flows = result.to_polars("flows")
    expected = [flow["bytes"] for run in report for flow in run["flows"]]
    assert flows["bytes"].to_list() == expected
    assert flows["flow"].to_list() == [0, 1] * 4
    assert len(result["stations"]) == 8


def test_polars_pandas_and_pyarrow_take_a_table_as_it_is(scenario: wakeai.Scenario) -> None:
    result = wakeai.run(scenario)
    arrow = pyarrow.table(result["runs"])
    assert arrow.column_names == result["runs"].column_names
    assert result.to_pandas("runs")["jain"].tolist() == result.to_polars("runs")["jain"].to_list()
    assert polars.DataFrame(result["runs"]).shape == (2, len(arrow.column_names))
    with pytest.raises(KeyError, match="there are flows, groups, runs, stations"):
        result["nothing"]


def test_the_same_seed_gives_the_same_report(scenario: wakeai.Scenario) -> None:
    one, other = (wakeai.run(scenario, jobs=jobs).report for jobs in (1, 2))
    for report in (one, other):
        for run in report["runs"]:
            del run["wall_s"]
    assert one == other


def test_the_records_are_tables_too(scenario: wakeai.Scenario, tmp_path: Path) -> None:
    kept = wakeai.run(scenario, out=tmp_path / "one")
    assert {"samples", "events", "queues", "airtime"} <= set(kept.tables)
    assert len(kept["samples"]) > 100
    in_memory = wakeai.run(scenario, records=True)
    assert in_memory.to_polars("samples").equals(kept.to_polars("samples"))
    opened = wakeai.open(tmp_path / "one")
    assert opened.report == kept.report
    assert set(opened.tables) == set(kept.tables)
    with pytest.raises(wakeai.RunError, match="earlier result"):
        wakeai.run(scenario, out=tmp_path / "one")
    wakeai.run(scenario, out=tmp_path / "one", force=True)


def test_the_parts_of_a_recording_are_one_table(tmp_path: Path) -> None:
    table = wakeai.run(_quick())["runs"]
    for part in (0, 1):
        table.write_parquet(tmp_path / f"connections-{part:06}.parquet")
        table.write_parquet(tmp_path / f"readings-{part:06}.parquet")
    (tmp_path / "connections-000002.parquet").write_bytes(b"PAR1 and a part that is being written")
    opened = wakeai.open(tmp_path)
    assert set(opened.tables) == {"connections", "readings"}
    assert len(opened["connections"]) == 2 * len(table)
    assert opened.report == {}


def _quick() -> wakeai.Scenario:
    scenario = wakeai.Scenario.load(ROOT / "scenarios/quickstart.toml")
    return scenario.replace(duration="3s", warmup="1s")


def test_a_directory_without_a_result_is_refused(tmp_path: Path) -> None:
    with pytest.raises(wakeai.ReadError, match="holds no result"):
        wakeai.open(tmp_path)
    (tmp_path / "samples.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(wakeai.ReadError, match="samples.parquet"):
        wakeai.open(tmp_path)


def test_an_unknown_condition_is_refused(scenario: wakeai.Scenario) -> None:
    with pytest.raises(wakeai.RunError, match="default, airtime"):
        wakeai.run(scenario, conditions=["both"])


LONG = """
import sys, threading, time
import wakeai
def tick():
    for _ in range(3):
        time.sleep(0.05)
    print("running without the GIL", flush=True)
threading.Thread(target=tick, daemon=True).start()
wakeai.run(sys.argv[1], duration="100h", **{"stations.tablet.count": 40})
"""


def test_other_threads_run_meanwhile_and_ctrl_c_ends_the_runs() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", LONG, "scenarios/quickstart.toml"],
        cwd=ROOT,
        env=os.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "running without the GIL\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
        assert errors.rstrip().endswith("KeyboardInterrupt"), errors
        assert process.returncode == -signal.SIGINT
    finally:
        process.kill()
