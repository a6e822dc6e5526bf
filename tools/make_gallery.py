"""Draw the figures of docs/gallery.md, and photograph the report, from the embedded data.

python tools/make_gallery.py            # the figures
python tools/make_gallery.py --report   # the report's screenshot too; needs Chromium and Selenium
"""

from __future__ import annotations

import argparse
import base64
import io
import shutil
import tempfile
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from PIL import Image

import raterwise as rw
from raterwise import plots
from raterwise.cli.demo import further_parts
from raterwise.cli.stability_curves import measure, named
from raterwise.datasets import load_lidc_malignancy
from raterwise.evaluate import predictions_of
from raterwise.results import Results

IMAGES = Path(__file__).parents[1] / "docs" / "images"
DPI = 110
WIDTH, HEIGHT = 1000, 640
COLOURS = 96
SECTIONS = ("reliability", "metrics", "thresholds", "recalibration", "worklist")
"""Of the report, besides its top."""


def main() -> None:
    """Make the images."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--report", action="store_true", help="photograph the report")
    wanted = parser.parse_args()
    matplotlib.use("Agg")
    IMAGES.mkdir(exist_ok=True)
    data = load_lidc_malignancy()
    options = {"groups": data.patients, "class_names": data.class_names, "on_single": "drop"}
    results = rw.evaluate(data.probs, data.labels, subgroups=told_apart(data), **options)
    parts = further_parts(data, results, lambda what, done: None, 0.0)
    figures(results, parts, data)
    if wanted.report:
        photograph(results, parts)


def told_apart(data: object) -> dict[str, np.ndarray]:
    """Return what the nodules are told apart by."""
    column = {name: data.features[:, i] for i, name in enumerate(data.feature_names)}
    sizes = np.array(["< 6 mm", "6-10 mm", "10-20 mm", "> 20 mm"])
    return {
        "nodule size": sizes[np.digitize(column["diameter_mm"], [6, 10, 20])],
        "CT slices": np.where(column["slice_thickness_mm"] > 1.5, "thick", "thin"),
    }


def figures(results: Results, parts: dict[str, Any], data: object) -> None:
    """Draw every display; `parts` has the model after temperature scaling."""
    probs, labels, after = data.probs, data.labels, parts["after"]
    before_after = plots.ReliabilityDisplay.from_results(results, name="raw", histogram=False)
    plots.ReliabilityDisplay.from_results(
        after, ax=before_after.ax_, name="temperature-scaled", histogram=False
    )
    cases = predictions_of(probs, labels, groups=data.patients)
    steady, _ = measure(cases, ("ece", "robust_ece"))
    curves = {name: one.curve for name, one in named(steady).items()}
    plan = rw.planning.plan("brier", probs, labels, groups=data.patients)
    made = {
        "reliability": plots.ReliabilityDisplay.from_results(results),
        "reliability_before_after": before_after,
        "disagreement": plots.DisagreementReliabilityDisplay.from_results(results),
        "ccc": plots.CCCDisplay.from_results(results, threshold=0.6),
        "risk_coverage": plots.RiskCoverageDisplay.from_results(results, threshold=0.6),
        "calibration_dispersion": plots.CalibrationDispersionDisplay.from_results(
            {"raw": results, "temperature-scaled": after}
        ),
        "stability": plots.StabilityDisplay.from_curves(curves),
        "subgroups": plots.SubgroupDisplay.from_results(results, "brier"),
        "plan": plots.PlanDisplay.from_plan(plan, budget=600),
    }
    for name, display in made.items():
        with plots.journal_style():
            display.figure_.savefig(IMAGES / f"{name}.png", dpi=DPI)
        print(f"docs/images/{name}.png")


def photograph(results: Results, parts: dict[str, Any]) -> None:
    """Save what the report looks like at first sight, in a window of a usual size."""
    from selenium import webdriver
    from selenium.webdriver.support.ui import WebDriverWait

    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        results.to_html(page, title="Lung nodules: how likely malignant?", **parts)
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or ""
        for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"):
            options.add_argument(flag)
        options.add_argument(f"--user-data-dir={folder}/profile")
        driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
        size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        driver.get(page.as_uri())
        drawn = "return document.documentElement.dataset.drawn"
        WebDriverWait(driver, 30).until(lambda d: d.execute_script(drawn))
        driver.execute_script("document.querySelector('#worklist details').open = true")
        photos = {"report": _photo(driver, 0)}
        for name in SECTIONS:
            photos[f"report_{name}"] = _photo(driver, _top(driver, name))
        driver.quit()
    for name, png in photos.items():
        few = Image.open(io.BytesIO(png)).convert("RGB").quantize(COLOURS)  # a third of the size
        few.save(IMAGES / f"{name}.png", optimize=True)
        print(f"docs/images/{name}.png")


def _top(driver: object, name: str) -> float:
    script = f"return document.getElementById('{name}').getBoundingClientRect().top + scrollY"
    return float(driver.execute_script(script))


def _photo(driver: object, top: float) -> bytes:
    clip = {"x": 0, "y": float(np.floor(top)), "width": WIDTH, "height": HEIGHT, "scale": 1}
    asked = {"format": "png", "captureBeyondViewport": True, "clip": clip}
    shot = driver.execute_cdp_cmd("Page.captureScreenshot", asked)
    return base64.b64decode(shot["data"])


if __name__ == "__main__":
    main()
