"""Chromium, as a person has it on a phone or a desk, and what it did."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver

Browse = Callable[[int], webdriver.Chrome]


@pytest.fixture
def browse(tmp_path: Path) -> Iterator[Browse]:
    """A browser with a window of the given width, which logs its console and its requests."""
    opened: list[webdriver.Chrome] = []

    def browser(width: int) -> webdriver.Chrome:
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / str(width)}"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver = webdriver.Chrome(options, webdriver.ChromeService("/usr/bin/chromedriver"))
        opened.append(driver)
        # A headless window has a least width, so the view is set by itself.
        view = {"width": width, "height": 1400, "deviceScaleFactor": 1, "mobile": width < 600}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", view)
        # The log of requests begins with the browser's own page.
        driver.get("about:blank")
        requested(driver)
        return driver

    yield browser
    for driver in opened:
        driver.quit()


def said(driver: webdriver.Chrome) -> list[Any]:
    """What stands on the console."""
    return list(driver.get_log("browser"))  # type: ignore[no-untyped-call]


def requested(driver: webdriver.Chrome) -> set[str]:
    """The addresses that were asked for."""
    messages = [json.loads(one["message"])["message"] for one in driver.get_log("performance")]  # type: ignore[no-untyped-call]
    return {one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"}
