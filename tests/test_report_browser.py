"""Reports in a browser: headless Chromium opens the file, looks, and moves the controls.

Needs Selenium (in the extra "dev") and Chromium with its driver, as Debian packages them:
apt-get install chromium chromium-driver. The accessibility check needs axe-core besides: npm
install axe-core in the folder of the repository, or its path in AXE_CORE. What is missing is told
and skipped.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import reports
from raterwise.cli import app
from raterwise.report import page

selenium = pytest.importorskip(
    "selenium", reason="browser tests need selenium: pip install selenium"
)

from selenium import webdriver  # noqa: E402
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import Select, WebDriverWait  # noqa: E402

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
DRIVER = shutil.which("chromedriver")
AXE = Path(
    os.environ.get("AXE_CORE")
    or Path(__file__).parents[1] / "node_modules" / "axe-core" / "axe.min.js"
)

pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None,
    reason="browser tests need Chromium and its driver: apt-get install chromium chromium-driver",
)

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--window-size=1000,900"),
)


@pytest.fixture(scope="module", name="folder")
def folder_of_reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report and the comparison as files."""
    folder = tmp_path_factory.mktemp("reports")
    reports.results().to_html(folder / "report.html")
    reports.comparison().to_html(folder / "comparison.html")
    reports.with_subgroups().to_html(folder / "subgroups.html")
    reports.results().to_html(folder / "full.html", **reports.further_parts())
    demo = folder / "demo"
    (folder / "list.csv").write_text("case,prob_a,prob_b,alpha0\n1,0.4,0.6,4\n2,0.9,0.1,4\n")
    for command in (
        f"worklist {folder}/list.csv --html {folder}/worklist.html",
        f"demo --resamples 20 --out {demo}",
        f"agreement {demo}/ratings.csv --resamples 20 --html {folder}/agreement.html",
        f"plan brier {demo}/predictions.csv --ratings {demo}/ratings.csv --cases 50,100 "
        f"--raters 1,2 --budget 100 --html {folder}/plan.html",
    ):
        done = CliRunner().invoke(app, command.split())
        assert done.exit_code == 0, done.output
    (folder / "demo" / "report.html").rename(folder / "demo.html")
    reports.two_classes().to_html(folder / "two.html")
    return folder


@pytest.fixture(scope="module", name="browser")
def headless_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A browser with a fresh profile, which keeps its console and its network log."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with socket.socket() as probe:  # a free port of our own: two workers may run side by side
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    service = webdriver.ChromeService(DRIVER, port=port)
    driver = webdriver.Chrome(options=options, service=service)
    yield driver
    driver.quit()


def view(
    browser: Any, path: Path, *, width: int = 1000, dark: bool = False, media: str = "screen"
) -> Any:
    """Open a file in a window of some width and wait until its charts are drawn."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": [feature]})
    browser.get("about:blank")
    browser.get_log("browser"), browser.get_log("performance")
    browser.get(path.as_uri())
    drawn = "return document.documentElement.dataset.drawn || !document.querySelector('.chart')"
    WebDriverWait(browser, 30).until(lambda b: b.execute_script(drawn))
    return browser


def text_of(browser: Any, name: str) -> str:
    """Return the text of the element with an id."""
    return str(browser.find_element(By.ID, name).text)


def drawing(browser: Any, name: str) -> str:
    """Return the drawing in a chart's place."""
    return str(browser.find_element(By.CSS_SELECTOR, f"#{name} svg").get_attribute("innerHTML"))


@pytest.mark.parametrize("name", ["report", "comparison", "subgroups", "full", "demo"])
def test_it_opens_without_a_sound_and_without_a_network(
    browser: Any, folder: Path, name: str
) -> None:
    """No line in the console, no request but for the file itself."""
    view(browser, folder / f"{name}.html")
    assert browser.get_log("browser") == []
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]
    outside = [url for url in asked if not url.startswith(("data:", "about:"))]
    assert outside == [(folder / f"{name}.html").as_uri()]


@pytest.mark.parametrize(
    ("name", "charts"),
    [("report", 7), ("comparison", 4), ("subgroups", 3), ("full", 9), ("demo", 11)],
)
def test_every_chart_is_drawn(browser: Any, folder: Path, name: str, charts: int) -> None:
    """Each place holds a drawing with marks, as wide as its place."""
    view(browser, folder / f"{name}.html")
    places = browser.find_elements(By.CSS_SELECTOR, ".chart")
    assert len(places) == charts
    for place in places:
        svg = place.find_element(By.CSS_SELECTOR, "svg")
        assert len(svg.find_elements(By.CSS_SELECTOR, "path")) > 5
        assert svg.size["width"] > 250 and svg.size["width"] <= place.size["width"] + 1
        assert len(place.get_attribute("aria-label")) > 15


def test_the_whole_bundle_draws_as_well(
    browser: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is not known what vl-convert carries, the page has all of it and draws the same."""
    view(browser, folder / "two.html")
    known = re.sub(r"clip\d+", "clip", drawing(browser, "roc-chart"))
    in_parts = version("vl-convert-python").startswith(tuple(f"{v}." for v in page.CARRIED))
    monkeypatch.setattr(page, "CARRIED", {})
    page.chart_library.cache_clear()
    reports.two_classes().to_html(folder / "whole.html")
    page.chart_library.cache_clear()
    view(browser, folder / "whole.html")
    assert browser.get_log("browser") == []
    more = (folder / "whole.html").stat().st_size - (folder / "two.html").stat().st_size
    assert more > 200_000 if in_parts else more == 0
    assert re.sub(r"clip\d+", "clip", drawing(browser, "roc-chart")) == known


def test_the_operating_point_moves(browser: Any, folder: Path) -> None:
    """Another threshold: the measures of `decision_curve` there, and both charts follow."""
    curve = reports.two_classes_curve()
    view(browser, folder / "two.html")
    assert browser.get_log("browser") == []
    before = drawing(browser, "decision-chart"), drawing(browser, "roc-chart")
    for t in (0.5, 0.2):
        browser.execute_script(
            "const s = document.getElementById('act-from'); s.value = arguments[0];"
            "s.dispatchEvent(new Event('input'))",
            t,
        )
        i = round(100 * t) - 1
        for who in ("model", "raters"):
            band = getattr(curve, who).sensitivity
            told = f"{band.value[i]:.3f} [{band.low[i]:.3f}, {band.high[i]:.3f}]"
            assert text_of(browser, f"{who}-sensitivity") == told
        told = f"{curve.treat_all[i]:.3f}".replace("-", "−")
        assert text_of(browser, "all-net_benefit") == told
        assert text_of(browser, "act-from-value") == f"{t:.0%}"
    WebDriverWait(browser, 10).until(lambda b: drawing(b, "decision-chart") != before[0])
    WebDriverWait(browser, 10).until(lambda b: drawing(b, "roc-chart") != before[1])


@pytest.mark.parametrize("width", [800, 1000])
def test_a_value_does_not_run_into_its_interval(browser: Any, folder: Path, width: int) -> None:
    """Neither does one in powers of ten, which is wider than the others."""
    results = reports.results()
    tiny = replace(results["calibration_loss"], value=-4.2e-4, low=-1.2e-4, high=4.1e-4)
    estimates = {**results.estimates, "calibration_loss": tiny}
    replace(results, estimates=estimates).to_html(folder / "tiny.html")
    view(browser, folder / "tiny.html", width=width)
    ends = browser.execute_script(
        "return [...document.querySelectorAll('.metrics .value')].map(v => [...v.children].map("
        "c => { const r = document.createRange(); r.selectNodeContents(c);"
        " const b = r.getBoundingClientRect(); return [b.left, b.right, b.top, b.bottom] }))"
    )
    assert max(map(len, ends)) == 3
    for parts in ends:
        for (_, right, _, bottom), (left, _, top, _) in pairwise(parts):
            assert right < left or bottom <= top
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


def test_the_policy_forbids_scripts_that_are_not_ours(browser: Any, folder: Path) -> None:
    """A script put into the page afterwards, as an injection would be, does not run."""
    view(browser, folder / "report.html")
    browser.execute_script(
        "const s = document.createElement('script'); s.textContent = 'window.broken = 1';"
        "document.body.append(s)"
    )
    assert browser.execute_script("return window.broken") is None
    assert "Content Security Policy" in str(browser.get_log("browser"))


def test_hostile_names_are_shown(browser: Any, folder: Path) -> None:
    """A class called <script> is an option that can be read, and nothing has run."""
    view(browser, folder / "report.html")
    shown = [option.text for option in Select(browser.find_element(By.ID, "what")).options]
    assert shown == ["Predicted class", *(f"Class: {name}" for name in reports.HOSTILE)]
    assert browser.find_elements(By.CSS_SELECTOR, "main img") == []
    view(browser, folder / "comparison.html")
    assert "<script>alert(3)</script>" in drawing(browser, "ccc-chart").replace(
        "&lt;", "<"
    ).replace("&gt;", ">")


def test_the_class_selector_changes_the_charts(browser: Any, folder: Path) -> None:
    """Choosing a class draws another curve and another histogram; choosing back, the first."""
    view(browser, folder / "report.html")
    before = [drawing(browser, name) for name in ("reliability-chart", "counts-chart")]
    choice = Select(browser.find_element(By.ID, "what"))
    choice.select_by_index(2)
    WebDriverWait(browser, 10).until(lambda b: drawing(b, "reliability-chart") != before[0])
    WebDriverWait(browser, 10).until(lambda b: drawing(b, "counts-chart") != before[1])
    choice.select_by_index(0)
    bare = [re.sub(r"clip\d+", "clip", text) for text in before]
    WebDriverWait(browser, 10).until(
        lambda b: re.sub(r"clip\d+", "clip", drawing(b, "reliability-chart")) == bare[0]
    )


def test_the_metric_of_the_subgroups_can_be_chosen(browser: Any, folder: Path) -> None:
    """Another metric draws other levels; a hostile level stands in the chart as text."""
    view(browser, folder / "subgroups.html")
    before = drawing(browser, "subgroups-chart")
    assert "&lt;script&gt;alert(1)" in before and "sex" in before
    choice = Select(browser.find_element(By.ID, "subgroup-metric"))
    assert [option.text for option in choice.options] == [
        "Accuracy", "Expected calibration error", "Brier score",
    ]  # fmt: skip
    choice.select_by_index(1)
    WebDriverWait(browser, 10).until(lambda b: drawing(b, "subgroups-chart") != before)
    shown = text_of(browser, "subgroups")
    assert "scanner: <script>alert(1)</script> (80 cases): " in shown
    assert "(worse)" in shown


def test_the_slider_moves_the_operating_point(browser: Any, folder: Path) -> None:
    """With the keyboard, the threshold changes the counts, the sentence and both charts."""
    view(browser, folder / "report.html")
    slider = browser.find_element(By.ID, "threshold")
    slider.send_keys(Keys.HOME)
    table = reports.results().curves["thresholds"]
    assert text_of(browser, "correct_accepts") == f"{table['correct_accepts'][-1]:.0f}"
    assert text_of(browser, "correct_rejects") == "0"
    assert text_of(browser, "operating-point").startswith("240 of 240 cases are accepted")
    ccc, risk = drawing(browser, "ccc-chart"), drawing(browser, "risk-chart")
    slider.send_keys(Keys.ARROW_RIGHT * 30)
    wanted = float(slider.get_attribute("value"))
    row = max(i for i, t in enumerate(table["thresholds"]) if t is None or t >= wanted)
    for name in ("correct_accepts", "incorrect_accepts", "correct_rejects", "incorrect_rejects"):
        assert text_of(browser, name) == f"{table[name][row]:.0f}"
    assert text_of(browser, "threshold-value") == f"{wanted:.0%}"
    assert slider.get_attribute("aria-valuetext")
    WebDriverWait(browser, 10).until(lambda b: drawing(b, "ccc-chart") != ccc)
    WebDriverWait(browser, 10).until(lambda b: drawing(b, "risk-chart") != risk)


def test_the_threshold_tells_its_interval_and_its_band_is_drawn(browser: Any, folder: Path) -> None:
    """The sentence has the interval of the risk at the threshold; both curves are shaded."""
    view(browser, folder / "report.html")
    browser.find_element(By.ID, "threshold").send_keys(Keys.HOME)
    table = reports.results().curves["thresholds"]
    ends = f"[{100 * table['risk_low'][-1]:.0f}–{100 * table['risk_high'][-1]:.0f}]"
    assert text_of(browser, "operating-point").endswith(f"are wrong {ends}.")
    for name in ("ccc-chart", "risk-chart"):
        areas = browser.find_elements(By.CSS_SELECTOR, f"#{name} .mark-area path")
        assert len(areas) == 1 and len(areas[0].get_attribute("d")) > 500


def test_everything_a_report_can_show(browser: Any, folder: Path) -> None:
    """Each further part is there; a case of the worklist opens; hostile names are text."""
    view(browser, folder / "full.html")
    assert (folder / "full.html").stat().st_size < 1_200_000
    shown = [s.get_attribute("id") for s in browser.find_elements(By.CSS_SELECTOR, "main section")]
    assert shown == [
        *("verdict", "reliability", "metrics", "disagreement", "thresholds", "raters"),
        *("recalibration", "map", "stability", "worklist", "method", "provenance"),
    ]
    assert "before" in drawing(browser, "recalibration-chart")
    words = text_of(browser, "recalibration")
    assert "The change is after minus before" in words and "better" in words
    first = browser.find_element(By.CSS_SELECTOR, "#worklist details")
    assert "If the expert says" not in first.text and "<u>" in first.text
    first.find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    WebDriverWait(browser, 10).until(lambda b: "If the expert says “benign”" in first.text)
    assert browser.find_elements(By.CSS_SELECTOR, "main u, main img") == []


OPEN = "return [...document.querySelectorAll('details')].map(d => d.lastElementChild.offsetHeight)"


@pytest.mark.parametrize(("name", "value"), [("full", "threshold"), ("two", "act-from")])
def test_paper_has_everything_open_and_no_controls(
    browser: Any, folder: Path, name: str, value: str
) -> None:
    """No list is folded, no table scrolls, no control is left; what was chosen stands there."""
    view(browser, folder / f"{name}.html", media="print")
    heights = browser.execute_script(OPEN)
    assert len(heights) > 3 and min(heights) > 0
    for control in browser.find_elements(By.CSS_SELECTOR, "select, input"):
        assert not control.is_displayed()
    for chosen in browser.find_elements(By.CSS_SELECTOR, ".control .chosen"):
        assert chosen.is_displayed() and chosen.text
    assert browser.find_element(By.ID, f"{value}-value").is_displayed()
    for table in browser.find_elements(By.CSS_SELECTOR, ".scroll"):
        assert table.get_property("scrollHeight") <= table.get_property("clientHeight") + 1


@pytest.mark.parametrize("name", ["worklist", "two"])
def test_a_script_opens_what_is_folded_and_folds_it_again(
    browser: Any, folder: Path, name: str
) -> None:
    """For browsers whose style sheets cannot, on pages with charts and without; no complaint."""
    view(browser, folder / f"{name}.html")
    states = "return [...document.querySelectorAll('details')].map(d => d.open)"
    before = browser.execute_script(states)
    assert before and not any(before)
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert all(browser.execute_script(states))
    browser.execute_script("dispatchEvent(new Event('afterprint'))")
    assert browser.execute_script(states) == before
    assert browser.get_log("browser") == []


def test_the_numbers_behind_charts_come_last_on_paper(browser: Any, folder: Path) -> None:
    """Key figures are not pushed back by tables of bins; after printing all is where it was."""
    view(browser, folder / "report.html")
    order = """
    const after = (a, b) => !!(a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING);
    const last = document.getElementById("provenance");
    return [...document.querySelectorAll("details.numbers")].map(table => after(last, table));
    """
    before = browser.execute_script("return document.querySelector('main, body').innerHTML")
    assert len(browser.execute_script(order)) > 2 and not any(browser.execute_script(order))
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert all(browser.execute_script(order))
    titles = browser.find_elements(By.CSS_SELECTOR, "#numbers h3")
    assert titles[0].get_property("textContent") == "Does 90% mean 90%?"
    browser.execute_script("dispatchEvent(new Event('afterprint'))")
    assert not any(browser.execute_script(order))
    after = browser.execute_script("return document.querySelector('main, body').innerHTML")
    assert re.sub("<!--.*?-->", "", after) == re.sub("<!--.*?-->", "", before)


def test_what_was_chosen_is_what_paper_says(browser: Any, folder: Path) -> None:
    """The name of the class that the chart shows, not of the first one."""
    view(browser, folder / "report.html")
    choice = Select(browser.find_element(By.ID, "what"))
    choice.select_by_index(1)
    chosen = browser.find_element(By.CSS_SELECTOR, "#reliability .chosen")
    assert chosen.get_property("textContent") == choice.options[1].text


def test_a_key_opens_all_metrics(browser: Any, folder: Path) -> None:
    """Six figures at first; the keyboard unfolds the rest, and a printer folds nothing for good."""
    view(browser, folder / "report.html")
    assert len(browser.find_elements(By.CSS_SELECTOR, ".figures > li")) == 6
    table = browser.find_element(By.CSS_SELECTOR, "#all-metrics table")
    assert not table.is_displayed()
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert table.is_displayed()
    browser.execute_script("dispatchEvent(new Event('afterprint'))")
    assert not table.is_displayed()
    browser.find_element(By.CSS_SELECTOR, "#all-metrics summary").send_keys(Keys.ENTER)
    WebDriverWait(browser, 10).until(lambda b: table.is_displayed())


def test_the_tip_is_text(browser: Any, folder: Path) -> None:
    """Pointing at a dot tells its numbers, with a hostile name as text; Escape takes it away."""
    view(browser, folder / "report.html")
    Select(browser.find_element(By.ID, "what")).select_by_index(2)
    dot = "#reliability-chart .mark-symbol path"
    WebDriverWait(browser, 10).until(lambda b: b.find_elements(By.CSS_SELECTOR, dot))
    tip = browser.find_element(By.ID, "tip")
    assert not tip.is_displayed()
    ActionChains(browser).move_to_element(browser.find_element(By.CSS_SELECTOR, dot)).perform()
    WebDriverWait(browser, 10).until(lambda b: tip.is_displayed())
    assert "<script>alert(1)</script>" in tip.text and "observed: " in tip.text
    browser.find_element(By.TAG_NAME, "body").send_keys(Keys.ESCAPE)
    assert not tip.is_displayed()


COLOURS = """
const text = document.querySelector("#reliability-chart svg text");
return [getComputedStyle(document.body).backgroundColor, getComputedStyle(text).fill];
"""


def brightness(colour: str) -> float:
    """Return how bright an rgb() colour is, from 0 to 255."""
    return sum(map(float, re.findall(r"[\d.]+", colour)[:3])) / 3


def test_dark_and_light_and_paper(browser: Any, folder: Path) -> None:
    """The page and its charts turn dark together; paper is light whatever the screen is."""
    page, ink = map(brightness, view(browser, folder / "report.html").execute_script(COLOURS))
    assert page > 240 and ink < 80
    view(browser, folder / "report.html", dark=True)
    page, ink = map(brightness, browser.execute_script(COLOURS))
    assert page < 40 and ink > 200
    view(browser, folder / "report.html", dark=True, media="print")
    page, ink = map(brightness, browser.execute_script(COLOURS))
    assert page > 240 and ink < 80


@pytest.mark.parametrize(
    "name", ["report", "comparison", "subgroups", "full", "demo", "two", "plan", "agreement"]
)
def test_a_phone_does_not_scroll_sideways(browser: Any, folder: Path, name: str) -> None:
    """At 375 pixels nothing is wider than the window, also with every table open."""
    view(browser, folder / f"{name}.html", width=375)
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 375
    for chart in browser.find_elements(By.CSS_SELECTOR, ".chart svg"):
        assert chart.rect["x"] + chart.rect["width"] <= 375


@pytest.mark.skipif(
    not AXE.is_file(), reason="the accessibility check needs axe-core: npm install axe-core"
)
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(
    "name", ["report", "comparison", "subgroups", "full", "demo", "two", "plan", "agreement"]
)
def test_accessibility(browser: Any, folder: Path, name: str, dark: bool) -> None:
    """axe-core finds nothing serious, in the light and in the dark."""
    view(browser, folder / f"{name}.html", dark=dark)
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    browser.execute_script(AXE.read_text(encoding="utf-8"))
    browser.set_script_timeout(60)
    found = browser.execute_async_script(
        "const done = arguments[arguments.length - 1];"
        "axe.run(document, {resultTypes: ['violations']}).then(r => done(r.violations))"
    )
    told = [(v["impact"], v["id"], [n["html"][:120] for n in v["nodes"][:3]]) for v in found]
    assert [entry for entry in told if entry[0] in ("serious", "critical")] == []
