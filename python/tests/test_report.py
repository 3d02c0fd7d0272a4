"""`wakeai report`'s page in Chromium, as a person uses it: it draws, zooms, sorts, and loads nothing."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import wakeai
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from .browser import Browse, browse, requested, said
from .conftest import ROOT
from .programs import PROGRAM

pytestmark = pytest.mark.release

WIDTHS = (390, 1280, 2560)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The result of six stations under two conditions, with records."""
    out = tmp_path_factory.mktemp("result") / "out"
    wakeai.run(ROOT / "scenarios" / "quickstart.toml", conditions=["default", "airtime"], repeat=3, out=out)
    return out


def report(result: Path, page: Path) -> Path:
    """Writes the page."""
    subprocess.run([PROGRAM, "report", result, "-o", page], check=True)
    return page


def show(driver: webdriver.Chrome, page: Path) -> None:
    """Opens the page, and waits until all its plots are drawn."""
    driver.get(page.as_uri())
    places = len(driver.find_elements(By.CSS_SELECTOR, "[data-plot]"))
    assert places > 0
    WebDriverWait(driver, 20).until(lambda _: len(driver.find_elements(By.TAG_NAME, "canvas")) == places)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_fits_its_window_and_loads_nothing(
    result: Path, tmp_path: Path, browse: Browse, width: int
) -> None:
    page = report(result, tmp_path / "report.html")
    driver = browse(width)
    show(driver, page)
    widths = driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert widths[0] <= widths[1] == width, "the page scrolls sideways"
    drawn = driver.execute_script(
        "return [...document.querySelectorAll('canvas')].map((one) => {"
        " const pixels = one.getContext('2d').getImageData(0, 0, one.width, one.height).data;"
        " return new Set(new Uint32Array(pixels.buffer)).size; })"
    )
    assert all(colours > 5 for colours in drawn), drawn
    screenshots = os.environ.get("WAKEAI_SCREENSHOTS")
    if screenshots is not None:
        driver.save_screenshot(str(Path(screenshots) / f"report-{width}.png"))
    assert said(driver) == []
    assert requested(driver) == {page.as_uri()}


def test_a_plot_zooms_by_dragging_and_a_double_click_shows_all(
    result: Path, tmp_path: Path, browse: Browse
) -> None:
    driver = browse(1280)
    show(driver, report(result, tmp_path / "report.html"))

    def span() -> float:
        low, high = driver.execute_script("return [charts[0].scales.x.min, charts[0].scales.x.max]")
        return float(high) - float(low)

    whole = span()
    plot = driver.find_element(By.CSS_SELECTOR, "[data-plot] .u-over")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", plot)
    quarter = int(plot.size["width"] / 4)
    drag = ActionChains(driver).move_to_element_with_offset(plot, -quarter, 0).click_and_hold()
    drag.move_by_offset(quarter, 0).move_by_offset(quarter, 0).release().perform()
    WebDriverWait(driver, 10).until(lambda _: span() < 0.7 * whole)
    ActionChains(driver).double_click(plot).perform()
    WebDriverWait(driver, 10).until(lambda _: span() == whole)
    assert said(driver) == []


def test_every_table_sorts_by_every_column(result: Path, tmp_path: Path, browse: Browse) -> None:
    driver = browse(1280)
    show(driver, report(result, tmp_path / "report.html"))
    tables = driver.find_elements(By.CSS_SELECTOR, "table.sorts")
    assert tables
    for table in tables:
        for column, button in enumerate(table.find_elements(By.CSS_SELECTOR, "thead button")):
            for order in ("ascending", "descending"):
                driver.execute_script("arguments[0].click()", button)
                keys = driver.execute_script(
                    "return [...arguments[0].tBodies[0].rows].map((row) => row.cells[arguments[1]])"
                    ".map((cell) => cell.dataset.value ?? cell.textContent)",
                    table,
                    column,
                )
                numbers = [float(key) for key in keys if is_number(key)]
                assert numbers == sorted(numbers, reverse=order == "descending"), (column, order)
                head = table.find_elements(By.CSS_SELECTOR, "thead th")[column]
                assert head.get_attribute("aria-sort") == order
    assert said(driver) == []


def is_number(text: str) -> bool:
    """Whether a cell holds a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def test_all_text_of_a_hostile_result_is_shown_as_text(result: Path, tmp_path: Path, browse: Browse) -> None:
    hostile = tmp_path / "out"
    hostile.mkdir()
    names: dict[str, str] = {}

    def harm(value: Any) -> Any:
        match value:
            case str():
                return names.setdefault(value, f"</script><img src=x onerror=document.title='owned'>'\"&amp;{len(names)}")
            case list():
                return [harm(one) for one in value]
            case dict():
                # `wakeai report` refuses a result in which `max_from` is not one of its two words.
                return {key: one if key == "max_from" else harm(one) for key, one in value.items()}
        return value

    found = json.loads((result / "result.json").read_text(encoding="utf-8"))
    (hostile / "result.json").write_text(json.dumps(harm(found)), encoding="utf-8")
    scenario = "# </code></pre></script><img src=x onerror=document.title='owned'>\n"
    (hostile / "scenario.toml").write_text(scenario, encoding="utf-8")
    for records in result.glob("*.parquet"):
        (hostile / records.name).symlink_to(records)
    page = report(hostile, tmp_path / "<img src=x>.html")
    driver = browse(1280)
    driver.get(page.as_uri())
    WebDriverWait(driver, 20).until(lambda _: driver.find_elements(By.CSS_SELECTOR, "thead button"))
    text = driver.execute_script("return document.body.textContent")
    assert scenario.strip() in text
    for original in ("quickstart", "default", "airtime", "tablet1", "tablet6", "up", found["version"]):
        assert names[original] in text, original
    assert not driver.find_elements(By.TAG_NAME, "img")
    assert driver.title != "owned"
    assert said(driver) == []
    assert requested(driver) == {page.as_uri()}


def test_the_page_is_dark_where_the_system_is_and_prints(result: Path, tmp_path: Path, browse: Browse) -> None:
    driver = browse(1280)
    show(driver, report(result, tmp_path / "report.html"))

    def background() -> str:
        return str(driver.execute_script("return getComputedStyle(document.body).backgroundColor"))

    light = background()
    scheme = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme)
    WebDriverWait(driver, 10).until(lambda _: background() != light)
    assert len(driver.print_page()) > 10_000
    assert said(driver) == []
