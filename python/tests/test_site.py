"""The site that `make site` builds, in Chromium: each page fits its window, loads nothing, and is found by the search."""

import os
import subprocess
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from .browser import Browse, browse, requested, said
from .conftest import ROOT

pytestmark = pytest.mark.release

HTML = ROOT / "target" / "site" / "html"


@pytest.fixture(scope="module")
def pages() -> list[Path]:
    """The pages of the site, which is built for them."""
    subprocess.run([ROOT / "scripts" / "site"], check=True)
    return sorted(path for path in HTML.rglob("*.html") if path.name not in ("404.html", "toc.html"))


@pytest.mark.parametrize("width", (390, 1280))
def test_each_page_fits_its_window_and_loads_nothing_from_elsewhere(
    pages: list[Path], browse: Browse, width: int
) -> None:
    driver = browse(width)
    assert len(pages) > 50
    for page in pages:
        driver.get(page.as_uri())
        widths = driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
        assert widths[0] <= widths[1] == width, f"{page} scrolls sideways"
        broken = "return [...document.images].filter((one) => !one.naturalWidth).map((one) => one.src)"
        assert driver.execute_script(broken) == [], page
        screenshots = os.environ.get("WAKEAI_SCREENSHOTS")
        if screenshots is not None:
            name = "-".join(page.relative_to(HTML).with_suffix("").parts)
            driver.save_screenshot(str(Path(screenshots) / f"site-{name}-{width}.png"))
    assert said(driver) == []
    assert all(url.startswith((HTML.as_uri(), "data:")) for url in requested(driver))


def test_the_search_finds_a_page_without_a_server(pages: list[Path], browse: Browse) -> None:
    driver = browse(1280)
    driver.get((HTML / "index.html").as_uri() + "?search=wrong_version")
    found = WebDriverWait(driver, 20).until(lambda _: driver.find_elements(By.CSS_SELECTOR, "#mdbook-searchresults a"))
    assert any("docs/concepts/presence.html" in str(one.get_attribute("href")) for one in found)
    assert said(driver) == []
