"""One scenario in the three worlds, simulator, lab and field, and the report with all of them, in Chromium."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from .browser import Browse, browse, requested, said
from .conftest import PATIENCE
from .programs import ANY_LATENESS, PROGRAM, machine

pytestmark = pytest.mark.release

# Stands in for adb: the serial number of a device is the name of a host's namespace.
ADB = """#!/bin/sh
[ "$1 $3 $4" = '-s shell -T' ] || exit 9
exec nsenter --net=/run/netns/"$2" sh -c "$5"
"""


def machines(held: dict[str, Any]) -> str:
    """The machines file for the hosts of a lab that is held."""
    tables = []
    for host in held["hosts"]:
        keys = {
            "station": host["name"],
            "machine": f"adb:{host['namespace']}",
            "interface": host["interface"],
            "address": host["address"],
            "program": str(PROGRAM.resolve()),
        }
        if host["name"] != "server":
            keys |= {"bssid": host["bssid"], "broadcast": held["broadcast"]}
        tables.append("[[machines]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items()))
    return "\n".join(tables)


@pytest.fixture
def held(scenario_file: Path) -> Iterator[dict[str, Any]]:
    """The network of the scenario, which stands until the test ends."""
    with machine():
        command: list[str | Path] = [PROGRAM, "lab", scenario_file, "--hold", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as lab:
            try:
                assert lab.stdout is not None
                yield json.loads(lab.stdout.readline())
            finally:
                lab.send_signal(signal.SIGINT)
                lab.wait(60)


def test_one_report_has_the_three_worlds(
    tmp_path: Path, scenario_file: Path, held: dict[str, Any], browse: Browse
) -> None:
    stand_in = tmp_path / "bin" / "adb"
    stand_in.parent.mkdir()
    stand_in.write_text(ADB, encoding="utf-8")
    stand_in.chmod(0o755)
    (tmp_path / "machines.toml").write_text(machines(held), encoding="utf-8")
    path = {**os.environ, "PATH": f"{stand_in.parent}:{os.environ['PATH']}"}

    def run(*arguments: str | Path) -> None:
        subprocess.run([PROGRAM, *arguments], cwd=tmp_path, env=path, check=True, timeout=PATIENCE)

    run("sim", scenario_file, "--repeat", "2", "--out", "sim")
    run("lab", scenario_file, "--repeat", "2", "--out", "lab", *ANY_LATENESS)
    run("field", scenario_file, "--machines", "machines.toml", "--repeat", "2", "--solo", "2s", "--out", "field")
    results = {world: json.loads((tmp_path / world / "result.json").read_text()) for world in ("sim", "lab", "field")}
    assert {world: result["world"] for world, result in results.items()} == {world: world for world in results}
    run("report", "sim", "lab", "field", "-o", "worlds.html")

    page = tmp_path / "worlds.html"
    driver = browse(1280)
    driver.get(page.as_uri())
    places = len(driver.find_elements(By.CSS_SELECTOR, "[data-plot]"))
    assert places > 0
    WebDriverWait(driver, 20).until(lambda _: len(driver.find_elements(By.TAG_NAME, "canvas")) == places)
    text = driver.find_element(By.TAG_NAME, "body").text
    assert all(f"small in the {world}" in text for world in results), text
    assert said(driver) == []
    assert requested(driver) == {page.as_uri()}
    screenshots = os.environ.get("WAKEAI_SCREENSHOTS")
    if screenshots is not None:
        driver.save_screenshot(str(Path(screenshots) / "worlds.png"))
