"""Bias and error of estimators of the calibration error where the truth is known, N = 50 … 10^4.

    python -P benchmarks/accuracy.py --report      # simulate what is missing; tables and picture

The confidences are sigmoid(|x|), x normal with mean 2 and standard deviation 2, and the worlds are
those of experiments/robust_ece/truth.py: a case of confidence c is right with the probability g(c).
The truth is the mean of |g(c) - c|, and for the squared errors the root of the mean of (g(c) - c)²,
over a million quantiles of x. Peers that are not installed are left out.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import peers  # noqa: E402
from experiments.robust_ece.truth import WORLDS  # noqa: E402
from resumed import finished  # noqa: E402

SIZES = (50, 100, 200, 500, 1000, 2000, 5000, 10_000)
SHOWN = (50, 200, 1000, 10_000)
BINS, MANY = 15, 10**6
IMAGE = HERE.parent / "docs" / "images" / "accuracy.svg"
Record = dict[str, Any]


def theirs_debiased(power: int) -> Callable[[int], peers.Prepare]:
    """Return uncertainty-calibration's debiased error, in equal-mass bins."""

    def make(bins: int) -> peers.Prepare:
        import calibration

        error = calibration.get_calibration_error
        return lambda p, y: lambda: float(error(p, y, p=power, debias=True))

    return make


ABSOLUTE: dict[str, Callable[[int], peers.Prepare]] = {
    "`ece`": peers.ours("ece"),
    "`adaptive_ece`": peers.ours("adaptive_ece"),
    "`ece_sweep`": peers.ours("ece_sweep"),
    "`debiased_ece`": peers.ours("debiased_ece"),
    "`robust_ece`": peers.ours("robust_ece"),
    "`kde_ece`": peers.ours("kde_ece"),
    "`smooth_ece`": peers.ours("smooth_ece"),
    "uncertainty-calibration, debiased": theirs_debiased(1),
    "PyCalEva, `ace`": peers.pycaleva,
    "relplot, `smECE`": peers.relplot,
}
SQUARED: dict[str, Callable[[int], peers.Prepare]] = {
    "`rms_ce`": peers.ours("rms_ce"),
    "`debiased_ece(norm=2)`": peers.ours("debiased_ece", norm=2),
    "uncertainty-calibration, debiased, p = 2": theirs_debiased(2),
}
SAME = ("torchmetrics", "MONAI", "netcal", "calzone", "uncertainty-calibration", "MAPIE",
        "scikit-learn", "TensorFlow Probability")  # fmt: skip
"""What has our `ece` under its own name: by how much they differ is told, not a row for each."""
SLOW = {"`kde_ece`": 2000}
"""From how many cases on a fifth of the samples must do."""


# The world ----------------------------------------------------------------------------------------


def confidences(x: Any) -> Any:
    """Return sigmoid(|x|), away from 1."""
    return np.clip(1 / (1 + np.exp(-np.abs(x))), 0.5, 1 - 1e-6)


def truths(world: str) -> tuple[float, float]:
    """Return the mean absolute error and the root of the mean squared one.

    >>> truths("calibrated")
    (0.0, 0.0)
    """
    from scipy.stats import norm

    c = confidences(2 + 2 * norm.ppf((np.arange(MANY) + 0.5) / MANY))
    off = np.asarray(WORLDS[world](c)) - c
    return float(np.abs(off).mean()), float(np.sqrt((off**2).mean()))


def sample(world: str, number: int, random: np.random.Generator) -> tuple[Any, Any]:
    """Return confidences and whether each case was right."""
    c = confidences(random.normal(2, 2, number))
    return c, (random.random(number) < WORLDS[world](c)).astype(np.int64)


# The study ----------------------------------------------------------------------------------------


def made(wanted: dict[str, Callable[[int], peers.Prepare]]) -> dict[str, peers.Prepare]:
    """Return the estimators that are installed."""
    found = {}
    for name, make in wanted.items():
        try:
            found[name] = make(BINS)
        except ImportError:
            print(f"{name}: not installed here", file=sys.stderr)
    return found


def study(world: str, number: int, repeats: int, seed: int) -> Record:
    """Return mean and standard deviation of every estimator, and how far `ece` of others is off."""
    estimators = made(ABSOLUTE | SQUARED)
    others = made({name: peers.PEERS[name].make for name in SAME})
    values: dict[str, list[float]] = {name: [] for name in estimators}
    apart = dict.fromkeys(others, 0.0)
    for turn in range(repeats):
        p, y = sample(world, number, np.random.default_rng([seed, number, turn]))
        for name, prepare in estimators.items():
            if turn < repeats / 5 or number < SLOW.get(name, number + 1):
                values[name].append(prepare(p, y)())
        for name, prepare in others.items() if turn < 20 else ():
            apart[name] = max(apart[name], abs(prepare(p, y)() - values["`ece`"][-1]))
    told = {name: [float(np.mean(v)), float(np.std(v, ddof=1))] for name, v in values.items()}
    return {"estimates": told, "apart": apart}


def limits(world: str, seed: int) -> dict[str, float]:
    """Return what the estimators tend to: their values of a million cases, where they can."""
    p, y = sample(world, MANY, np.random.default_rng([seed, MANY]))
    return {name: prepare(p, y)() for name, prepare in made(ABSOLUTE | SQUARED).items()}


# Tables and picture -------------------------------------------------------------------------------


def cell(mean: float, deviation: float, truth: float) -> str:
    """Return bias and root mean squared error, in thousandths."""
    error = np.hypot(mean - truth, deviation)
    return f"{1e3 * (mean - truth):+.0f} / {1e3 * error:.0f}"


def tables(records: dict[str, Record]) -> Iterator[str]:
    """Yield a table for each world."""
    for world in WORLDS:
        both = truths(world)
        yield f"\n**{world}**: true error {both[0]:.4f}, root mean square {both[1]:.4f}\n"
        head = [f"N = {number:,}" for number in SHOWN]
        yield f"| | {' | '.join(head)} | tends to |"
        yield "| --- |" + " ---: |" * (len(SHOWN) + 1)
        for names, truth in ((ABSOLUTE, both[0]), (SQUARED, both[1])):
            for name in names:
                cells = []
                for number in SHOWN:
                    found = records[f"{world} {number}"]["estimates"].get(name)
                    cells.append(cell(*found, truth) if found else "")
                limit = records[f"{world} limit"]["limits"].get(name)
                end = f"{limit:.4f}" if limit is not None else ""
                yield f"| {name} | {' | '.join(cells)} | {end} |"
    yield "\n| how far from our `ece`, at most | |\n| --- | ---: |"
    for name in SAME:
        apart = [r["apart"][name] for r in records.values() if name in r.get("apart", {})]
        if apart:
            yield f"| {name} {peers.PEERS[name].version} | {max(apart):.0e} |"


def picture(records: dict[str, Record], path: Path) -> None:
    """Draw the root mean squared error by the number of cases, in each world."""
    from pictures import COLOURS, drawn, plain

    def draw(*panels: Any) -> None:
        for axes, world in zip(panels, WORLDS, strict=True):
            truth = truths(world)[0]
            for i, name in enumerate(ABSOLUTE):
                kept = {n: records[f"{world} {n}"]["estimates"].get(name) for n in SIZES}
                at = {n: np.hypot(m[0] - truth, m[1]) for n, m in kept.items() if m}
                own = name.startswith("`")
                label, colour = name.replace("`", ""), COLOURS[0] if i == 0 else plain(i - 1)
                look: Any = {"linestyle": "-" if own else "--", "linewidth": 1.3 + 0.9 * (i == 0)}
                axes.plot(list(at), list(at.values()), label=label, color=colour, **look)
            axes.set(xscale="log", yscale="log", xlabel="cases", title=world)
        panels[0].set(ylabel="root mean squared error")
        lines, names = panels[0].get_legend_handles_labels()
        panels[0].figure.legend(lines, names, loc="outside lower center", ncols=3, frameon=False)

    drawn(draw, path, (7.2, 4.0), panels=len(WORLDS))


def main() -> None:
    """Simulate, or tell what was simulated."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("accuracy.jsonl"))
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--report", action="store_true", help="with docs/images/accuracy.svg")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    begun = time.monotonic()

    def simulate(design: str) -> Record:
        world, size = design.rsplit(" ", 1)
        if size == "limit":
            return {"limits": limits(world, asked.seed)}
        found = study(world, int(size), asked.repeats, asked.seed)
        print(f"{design}: {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
        return found

    designs = [f"{world} {size}" for world in WORLDS for size in (*SIZES, "limit")]
    settings = {"repeats": asked.repeats, "seed": asked.seed, "bins": BINS}
    records = {r["design"]: r for r in finished(asked.out, settings, designs, simulate)}
    print("\n".join(tables(records)))
    if asked.report:
        picture(records, IMAGE)


if __name__ == "__main__":
    main()
