"""The public vocabulary as the design states it, written from that text alone.

Names, the order of arguments, defaults and what comes back; the decisions where the papers are
silent or wrong, by hand numbers; one name, one number, wherever the cases come from.
"""

from __future__ import annotations

import inspect
import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.metrics import log_loss
from typer.testing import CliRunner

import raterwise as rw
from raterwise.catalog import CATALOG
from raterwise.cli import app
from raterwise.torch import ensembles, losses, metrics
from strategies import OF_PROBABILITIES

Array = Any

SIGNATURES = {
    "Labels.from_classes": "y num_classes=None class_names=None",
    "Labels.from_ratings": "r num_classes=None missing=-1",
    "Labels.from_counts": "c",
    "Labels.from_long": "items raters classes num_classes=None",
    "epistemic_loss": "probs labels estimator='unbiased'",
    "irreducible_loss": "labels",
    "calibration_loss": "probs labels bins=15 estimator='debiased' singletons='zero'",
    "calibration_error": "probs labels bins=15 estimator='debiased' singletons='zero'",
    "disagreement_loss": "predicted labels",
    "statistic_loss": "statistic predicted labels order",
    "ece": "probs labels bins=15 question='top_label' per='annotation' norm=1",
    "robust_ece": "sigma=0.1 observed_bins_only=False",
    "robust_ece_mixture": "probs labels samples components=3 seed=0",
    "kde_ece": "probs labels question='top_label' p=1 bandwidth=None",
    "auccc": "probs labels confidence=None outside=None",
    "aurc": "probs labels confidence=None outside=None",
    "augrc": "probs labels confidence=None outside=None",
    "ccc_curve": "probs labels confidence=None outside=None",
    "confidence.auccc": "confidence correct outside=None",
    "confidence.io_auroc": "inside outside",
    "sensitivity": "probs labels threshold=0.5",
    "net_benefit": "probs labels threshold=0.5",
    "calibration_curve": "probs labels smooth=True",
    "krippendorff_alpha": "labels scale='nominal'",
    "exchangeability_test": "labels groups=None significance=0.05",
    "alpha_can_help": "probs labels",
    "shift_prevalence": "probs from_ to",
    "evaluate": (
        "probs labels=None metrics='all' groups=None class_names=None resamples=1000 level=0.95 "
        "seed=0 unit='cases' bins=15 question=None per=None options=None confidence=None "
        "outside=None subgroups=None threads=None"
    ),
    "compare": "models labels=None",
    "stability.total_variation": "metric probs labels start=0.2 step=0.05 repeats=100 seed=0",
    "stability.subsample_curve": (
        "metric probs labels fractions=(0.01, 0.05, 0.1, 0.25, 0.5, 1) repeats=20 seed=0"
    ),
    "planning.plan": "metric probs labels",
    "DirichletBelief": "probs concentration",
    "DirichletMixtureBelief": "samples concentration",
    "TemperatureScaling": "input=None",
    "AlphaCalibration": "l2='cv' penalty='coefficients' weighting='paper'",
    "segmentation.Case": "probabilities masks region=None spacing=None patient=None",
}


def public(path: str) -> Any:
    """Return a public object by its dotted name."""
    found: Any = rw
    for name in path.split("."):
        found = getattr(found, name)
    return found


@pytest.mark.parametrize("path", SIGNATURES)
def test_arguments_are_those_of_the_vocabulary(path: str) -> None:
    """The names are there, in their order, with their defaults; others may stand between."""
    known = inspect.signature(public(path)).parameters
    promised = SIGNATURES[path].replace(", ", ",").split()
    names = [one.partition("=")[0] for one in promised]
    by_place = [n for n, one in known.items() if one.kind is not inspect.Parameter.KEYWORD_ONLY]
    assert [n for n in by_place if n in names] == [n for n in names if n in by_place]
    for one in promised:
        name, _, default = one.partition("=")
        found = known[name].default
        assert default == ("" if found is inspect.Parameter.empty else repr(found).replace(" ", ""))


def messy(seed: int, classes: int, raters: int, cases: int = 60) -> tuple[Array, rw.Labels]:
    """Return probabilities with zeros, ones and ties, and ratings of which a quarter is missing."""
    random = np.random.default_rng(seed)
    probs = random.dirichlet(np.full(classes, 0.4), cases)
    probs[::7] = np.eye(classes)[random.integers(0, classes, len(probs[::7]))]
    probs[1::5] = probs[1]
    ratings = (probs.cumsum(1)[:, None] < random.random((cases, raters, 1))).sum(2)
    ratings = np.minimum(ratings, classes - 1)
    odd = random.random(ratings.shape) < 0.2
    ratings[odd] = random.integers(0, classes, odd.sum())
    ratings[:, 1:][random.random((cases, raters - 1)) < 0.25] = -1
    return probs, rw.Labels.from_ratings(ratings, classes)


def by_function(name: str, probs: Array, labels: rw.Labels, weights: Array) -> float | str | None:
    """Return what the public function says: a number, None where undefined, "refused"."""
    function = getattr(rw, name)
    known = inspect.signature(function).parameters
    asked = {"weights": weights, "on_single": "drop"}
    given = (labels,) if next(iter(known)) == "labels" else (probs, labels)
    try:
        value: float = function(*given, **{k: v for k, v in asked.items() if k in known})
    except rw.UndefinedMetricError:
        return None
    except rw.InvalidInputError:
        return "refused"
    assert type(value) is float
    assert math.isfinite(value), name
    return value


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("classes", "raters"), [(2, 1), (2, 4), (3, 3), (10, 5)])
def test_a_function_says_what_evaluate_says(classes: int, raters: int, weighted: bool) -> None:
    """One name, one number: for every metric, on messy cases, in both precisions."""
    probs, labels = messy(classes + raters, classes, raters)
    weights = np.random.default_rng(0).choice([0, 0.5, 1, 2.5], len(probs)) if weighted else None
    for given in (probs, probs.astype(np.float32)):
        results = rw.evaluate(
            given, labels, OF_PROBABILITIES, resamples=0, weights=weights, on_single="drop"
        )
        compared = 0
        for name in OF_PROBABILITIES:
            found = by_function(name, given, labels, weights)
            value = results[name].value
            if found in ("refused", None):
                assert value is None, name
            else:
                assert value == pytest.approx(found, rel=1e-12, abs=1e-14), name
                compared += 1
        assert compared > 15


@pytest.mark.parametrize("seed", [5, 10])
def test_a_stream_is_within_its_bound(seed: int, tmp_path: Path) -> None:
    """Where fine cells stand for scores the error is no larger than is said."""
    probs, labels = messy(seed, 5, 3, 500)
    probs = 0.999 * np.random.default_rng(seed).dirichlet(np.ones(5), 500) + 0.001 * probs
    table = {f"prob_{k}": probs[:, k] for k in range(5)}
    table |= {f"count_{k}": labels.counts[:, k] for k in range(5)}
    pl.DataFrame(table).write_parquet(tmp_path / "cases.parquet")
    asked: dict[str, Any] = {"metrics": OF_PROBABILITIES, "resamples": 0, "on_single": "drop"}
    memory = rw.evaluate(probs, labels, **asked)
    stream = rw.evaluate_stream(tmp_path / "cases.parquet", count_prefix="count_", **asked)
    for name in OF_PROBABILITIES:
        value, bound = memory[name].value, stream[name].bound or 0.0
        assert stream[name].value == pytest.approx(value, abs=bound + 1e-9), name


def test_a_streamed_median_error_is_within_its_bound(tmp_path: Path) -> None:
    """Where two scores share a cell the median of the errors may fall on its neighbour."""
    random = np.random.default_rng(114)
    cases = (random.choice([2, 3, 5]), random.integers(60, 600))[1]
    probs = random.dirichlet(np.ones(2) * random.choice([0.2, 1.0, 3.0]), cases)
    ratings = (probs.cumsum(1)[:, None] < random.random((cases, 3, 1)) * 0.999999).sum(2)
    odd = random.random(ratings.shape) < 0.2
    ratings[odd] = random.integers(0, 2, odd.sum())
    ratings[(random.random(ratings.shape) < 0.2) & (np.arange(3) > 0)] = -1
    labels = rw.Labels.from_ratings(ratings, 2)
    table = {"prob_0": probs[:, 0], "prob_1": probs[:, 1]}
    table |= {f"count_{k}": labels.counts[:, k] for k in range(2)}
    pl.DataFrame(table).write_parquet(tmp_path / "cases.parquet")
    found = rw.evaluate_stream(
        tmp_path / "cases.parquet", ["ici", "e50", "e90"], resamples=0, count_prefix="count_"
    )
    for name in ("ici", "e50", "e90"):
        error = abs(float(found[name]) - getattr(rw, name)(probs, labels))
        assert error <= (found[name].bound or 0), name
        assert (found[name].bound or 0) < 0.01, name
    assert abs(float(found["e50"]) - rw.e50(probs, labels)) > 1e-4


def test_images_and_findings_say_the_same() -> None:
    """Voxels are cases, and a finding is two classes asked about the positive one."""
    random = np.random.default_rng(0)
    probs, ratings = random.random((2, 6, 8)), random.integers(0, 2, (2, 3, 6, 8))
    names = ["ece", "brier", "epistemic_loss", "classwise_ece", "accuracy"]
    each = [
        rw.evaluate(
            p.ravel(), rw.Labels.from_ratings(r.reshape(3, -1).T, 2), names, resamples=0
        )
        for p, r in zip(probs, ratings, strict=True)
    ]  # fmt: skip
    cases = (
        rw.segmentation.Case(np.stack([1 - p, p]), r) for p, r in zip(probs, ratings, strict=True)
    )
    images = rw.segmentation.evaluate(
        cases, metrics=names, reduction="per_case", num_classes=2, resamples=0
    )
    flat, said = probs.reshape(2, -1).T, ratings.transpose(1, 0, 2, 3).reshape(3, 2, -1)
    findings = rw.evaluate_multilabel(
        flat, said.sum(0).T, np.full(flat.shape, 3), ["a", "b"], names, resamples=0
    )
    for name in names:
        mean = np.mean([float(one[name]) for one in each])
        assert images[name].value == pytest.approx(mean, abs=1e-12), name
    asked = rw.Labels.from_ratings(said[:, 0].T, 2)
    own = rw.ece(flat[:, 0], asked, question="positive")
    assert findings.findings["a"]["ece"].value == pytest.approx(own, abs=1e-12)


COLUMNS = {
    "names": ["a", "b"],
    "numbers": [0, 1],
    "pairs": pd.MultiIndex.from_tuples([("p", "a"), ("p", "b")]),
}


@pytest.mark.parametrize("dtype", ["float64", "Float64", "float32"])
@pytest.mark.parametrize("columns", COLUMNS.values(), ids=COLUMNS)
def test_a_frame_is_its_columns_whatever_they_are_called(columns: Any, dtype: str) -> None:
    """`pd.DataFrame(array)` has numbers for names: those are names too."""
    frame = pd.DataFrame([[0.75, 0.25], [0.5, 0.5]], columns=columns).astype(dtype)
    assert rw.brier(frame, [0, 1]) == pytest.approx((0.25**2 + 0.5**2) / 2)
    counts = pd.DataFrame([[2, 1], [0, 3]], columns=columns)
    assert rw.Labels.from_counts(counts).counts.tolist() == [[2, 1], [0, 3]]
    assert rw.Labels.from_ratings(pd.DataFrame([[0, 1], [1, 1]], columns=columns)).counts.tolist()


def test_columns_of_a_frame_by_number_and_twice() -> None:
    """Raters may be numbered; two columns of one name are an error of ours."""
    frame = pd.DataFrame([[0, 1], [1, 1]])
    assert rw.Labels.from_frame(frame, raters=[0, 1]).counts.tolist() == [[1, 1], [0, 2]]
    frame.columns = pd.Index(["ann", "ann"])
    with pytest.raises(rw.InvalidInputError, match="ratings: must have columns of diff"):
        rw.Labels.from_ratings(frame)


def test_any_kind_of_array_gives_the_same_float() -> None:
    """NumPy, torch, pandas, polars and lists; one column is the probability of class 1."""
    p, y = np.array([0.9, 0.2, 0.7, 0.4]), np.array([1, 0, 0, 1])
    both = np.stack([1 - p, p], axis=1)
    hand = float(np.mean([0.1, 0.2, 0.7, 0.6]))
    for probs in (both, torch.tensor(both), pd.DataFrame(both), pl.DataFrame(both), both.tolist(),
                  p, torch.tensor(p), pd.Series(p), pl.Series(p)):  # fmt: skip
        for labels in (y, torch.tensor(y), pd.Series(y, dtype="Int64"), pl.Series(y)):
            found = rw.ece(probs, labels)
            assert type(found) is float
            assert found == pytest.approx(hand)


def test_binary_numbers_by_hand() -> None:
    """Four cases whose figures are worked on paper."""
    p, y = np.array([0.9, 0.2, 0.7, 0.4]), np.array([1, 0, 0, 1])
    hand = {
        "accuracy": 0.5, "brier": 0.225, "expected_squared_loss": 0.45, "auroc": 0.75,
        "ranked_probability_score": 0.225, "sensitivity": 0.5, "specificity": 0.5, "ppv": 0.5,
        "npv": 0.5, "f1": 0.5, "observed_expected_ratio": 2 / 2.2, "ece": 0.4, "mce": 0.7,
        "average_precision": 0.5 + 0.5 * 2 / 3, "rms_ce": math.sqrt(0.225),
    }  # fmt: skip
    for name, value in hand.items():
        assert getattr(rw, name)(p, y) == pytest.approx(value), name
    assert rw.net_benefit(p, y, 0.3) == pytest.approx(0.5 - 0.25 * 0.3 / 0.7)
    assert rw.sensitivity(p, y, threshold=0.3, positive=1) == 1.0
    assert rw.shift_prevalence([[0.5, 0.5]], 0.5, 0.1) == pytest.approx(np.array([[0.9, 0.1]]))


def test_where_the_papers_are_silent() -> None:
    """Decisions of the design's table, each by a number that the other choice would not give."""
    # bins: [a, b), the last closed; p = 0 is in the first, p = 1 in the last
    assert rw.ece([0.0, 1.0, 0.0], [1, 1, 0], question="positive") == pytest.approx(1 / 3)
    edge = [2 / 15, 2 / 15 - 1e-9]
    assert rw.ece(edge, [1, 0], question="positive") == pytest.approx(0.5)
    # top label for two classes too
    assert rw.ece([0.2, 0.2], [0, 0]) == pytest.approx(0.2)
    assert rw.ece([0.3, 0.9], [1, 1]) == pytest.approx((0.7 + 0.1) / 2)
    # fewer cases than bins of equal mass
    assert rw.adaptive_ece([0.9, 0.6], [1, 0]) == pytest.approx((0.1 + 0.6) / 2)
    # Brier halves for two classes only
    assert rw.brier([0.9], [1]) == pytest.approx(0.01)
    assert rw.brier([0.9], [1], scale_by_half=False) == pytest.approx(0.02)
    assert rw.brier([[0.9, 0.1, 0.0]], [0]) == pytest.approx(0.02)
    # bins with one case
    assert rw.calibration_loss([0.05, 0.95], [0, 1]) == 0.0
    assert rw.calibration_loss([0.05, 0.95], [0, 1], singletons="plugin") == pytest.approx(0.005)
    # pooled annotations or cases
    labels = rw.Labels.from_ratings([[1, 1, 1], [0, -1, -1]], 2)
    assert rw.ece([0.9, 0.8], labels) == pytest.approx((3 * 0.1 + 0.8) / 4)
    assert rw.ece([0.9, 0.8], labels, per="case") == pytest.approx((0.1 + 0.8) / 2)
    # SCE among the cases predicted as k, classwise ECE among all
    probs = [[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.6, 0.3, 0.1]]
    assert rw.sce(probs, [0, 2, 1]) == pytest.approx((0.3 + 0.6 + 0.5) / 3 / 3)
    assert rw.classwise_ece(probs, [0, 2, 1]) == pytest.approx((1.1 + 1.4 + 0.9) / 3 / 3)
    assert math.isfinite(rw.kde_ece([0.0, 1.0, 0.5, 0.0], [0, 1, 1, 1], bandwidth=0.1))


def test_posteriors_by_hand() -> None:
    """Member weights are products; a Dirichlet adds counts."""
    samples = np.array([[[0.8, 0.2]], [[0.4, 0.6]]])
    labels = rw.Labels.from_counts([[2, 1]])
    weights = np.array([0.8**2 * 0.2, 0.4**2 * 0.6])
    expected = weights @ samples[:, 0] / weights.sum()
    assert rw.EnsembleBelief(samples).posterior(labels).mean[0] == pytest.approx(expected)
    belief = rw.DirichletBelief([[0.5, 0.5]], 4.0)
    assert belief.posterior(labels).mean[0] == pytest.approx(np.array([4, 3]) / 7)
    assert belief.disagreement()[0] == pytest.approx(4 / 5 * 0.5)
    assert belief.sample(3, 0).shape == (3, 1, 2)
    assert rw.DirichletMixtureBelief(samples, 4.0).posterior(labels).mean.shape == (1, 2)
    assert rw.PointBelief([[0.5, 0.5]]).expected_gain()[0] == 0.0


ERRORS = {
    "sum": (lambda: rw.ece([[0.5, 0.33]], [0]), "probs: rows must sum to 1 within 1e-4; row 0 "
            "sums to 0.83"),
    "float16": (lambda: rw.ece(np.array([[0.5, 0.33]], np.float16), [0]), "within 1e-2; row 0"),
    "logits": (lambda: rw.ece([[3.0, -2.0]], [0]), "probs: must lie in [0, 1]; row 0 holds 3"),
    "NaN": (lambda: rw.ece([0.5, np.nan], [0, 1]), "1 values are NaN, the first in row 1"),
    "unrated": (lambda: rw.ece([0.5], rw.Labels.from_ratings([[-1]], 2)), "every case needs a"),
    "single": (lambda: rw.epistemic_loss([0.5], [0]), "needs at least 2 labels per case"),
    "weights": (lambda: rw.calibration_loss([0.1, 0.2], [0, 1], weights=[1, 2]), "equal case"),
    "models of other classes": (
        lambda: rw.compare({"a": [0.5, 0.4], "b": [[0.2, 0.3, 0.5]] * 2}, [0, 1], resamples=2),
        "models: must share the classes; 'a' has 2, 'b' has 3",
    ),
    "a rating of an unknown case": (
        lambda: rw.Labels.from_long(["x", None], ["a", "b"], [0, 1]),
        "items: must name the case of each rating; row 1 is None",
    ),
    "a rating by an unknown rater": (
        lambda: rw.Labels.from_long([1, 2], [7, np.nan], [0, 1]),
        "raters: must name the rater of each rating; row 1 is nan",
    ),
    "outputs": (lambda: ensembles.mc_dropout(torch.nn.Dropout(), torch.zeros(1, 2), outputs=None),
                'outputs: must be "probs", "logits" or "features"'),
    "letters for names": (lambda: rw.Labels.from_classes(["a", "b"], class_names="ab"),
                          "class_names: must name each of the classes; got 'ab'"),
    "a number for names": (lambda: rw.evaluate([0.5], [1], "ece", class_names=2),
                           "class_names: must name each of the 2 classes; got 2"),
    "letters for findings": (lambda: rw.evaluate_multilabel([[0.5, 0.5]], [[1, 0]], [[1, 1]], "ab"),
                             "names: must be 2 different names, one per finding; got 'ab'"),
    "one name": (lambda: rw.Labels.from_classes([0, 0], class_names=["a"]), "class_names: must "
                 "name at least 2 classes; got 'a'"),
    "a name twice": (lambda: rw.Labels.from_classes([0, 1], class_names=["a", "a"]), "class_names: "
                     "must differ from each other; 'a' is there twice"),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors_say_the_rule_and_the_value(case: str) -> None:
    """As the design words them, and a ValueError underneath."""
    call, words = ERRORS[case]
    with pytest.raises(rw.InvalidInputError, match=re.escape(words)) as caught:
        call()
    assert isinstance(caught.value, ValueError)


WRONG_KINDS = {
    "models": (lambda: rw.compare([[0.5], [0.5]], [1]), "models: must be a mapping of names"),
    "cases": (lambda: rw.planning.plan("ece", [0.5], TWO_RATERS, 50), "cases: must be a list of "
              "whole numbers; got 50"),
    "images": (lambda: rw.segmentation.evaluate(rw.segmentation.Case([[0.5]], [[1]]), "ece"),
               "cases: must be a list or another iterable of images; got one Case"),
    "calibration_error": (lambda: rw.multi_rater(3), "calibration_error: must be a function"),
    "metrics": (lambda: rw.evaluate([0.5], [1], None), "metrics: must be names of metrics; got "),
    "a metric": (lambda: rw.evaluate([0.5], [1], [rw.ece]), "metrics: must be names of metrics"),
    "level": (lambda: rw.evaluate([0.5], [1], "ece", level="95%"), "level: must be a number; got "),
    "significance": (lambda: rw.exchangeability_test(TWO_RATERS, significance=None),
                     "significance: must be a number; got None"),
    "start": (lambda: rw.stability.total_variation("ece", [0.5], [1], start=[1]),
              "start: must be a number; got [1]"),
    "step": (lambda: rw.stability.total_variation("ece", [0.5], [1], step="a"),
             "step: must be a number; got 'a'"),
    "fractions": (lambda: rw.stability.subsample_curve("ece", [0.5], [1], fractions="all"),
                  "fractions: must be an array of numbers"),
    "seed": (lambda: rw.PointBelief([[0.5, 0.5]]).sample(2, seed="a"), "seed: must be a whole"),
    "sigma": (lambda: rw.robust_ece([0.5], [1], sigma=10**400), "sigma: must be a number; got"),
    "resamples": (lambda: rw.compare({"a": [0.5], "b": [0.4]}, [1], resamples="many"),
                  "resamples: must be a whole number; got 'many'"),
    "subgroups": (lambda: rw.evaluate([0.5], [1], "ece", subgroups=5),
                  "subgroups: must be one column of values; got 5"),
    "names of models": (lambda: rw.compare({1: [0.5], 2: [0.4]}, [1]),
                        "models: names must be text; got 1"),
    "a sparse tensor": (lambda: rw.ece(torch.eye(2).to_sparse(), [0, 1]),
                        "probs: must be a dense tensor of numbers"),
    "a tensor without values": (lambda: rw.ece(torch.zeros(2, 2, device="meta"), [0, 1]),
                                "probs: must be a dense tensor of numbers"),
    "a model": (lambda: ensembles.mc_dropout(None, torch.zeros(1, 2)), "model: must be a torch.nn"),
    "inputs": (lambda: ensembles.mc_dropout(torch.nn.Dropout(), None), "inputs: must be a tensor"),
    "transforms": (
        lambda: ensembles.test_time_augmentation(torch.nn.Dropout(), torch.zeros(1, 2), None),
        "transforms: must be functions of an image; got None",
    ),
    "a regulariser": (lambda: losses.Regularized(losses.FocalLoss(), None), "regulariser: must be"),
    "beta": (lambda: losses.Regularized(losses.FocalLoss(), losses.MDCA(), "a"), "beta: must be a"),
    "max_cases": (lambda: losses.RCR(max_cases="a"), "max_cases: must be a whole number; got 'a'"),
    "sparse logits": (lambda: losses.MDCA()(torch.eye(2).to_sparse(), torch.tensor([0, 1])),
                      "logits: must be a dense tensor; got torch.sparse_coo"),
    "sparse probabilities": (
        lambda: metrics.ECE(num_classes=2).update(torch.eye(2).to_sparse(), [0, 1]),
        "probs: must be a dense tensor of numbers; got torch.sparse_coo",
    ),
    "raters of a plan": (lambda: rw.planning.plan("ece", [0.5], TWO_RATERS, raters="a"),
                         "raters: must be a"),
    "a metric of options": (lambda: rw.evaluate([0.5], [1], "ece", options={1: {}}),
                            "options: must give options by metric"),
    "files of a stream": (lambda: rw.evaluate_stream(None), "paths: must be the name of a file; "
                          "got NoneType"),
    "a file": (lambda: rw.read_cases([[0.5]]), "predictions: must be the name of a file; got list"),
    "items": (lambda: rw.Labels.from_long([[1]], ["a"], [0], 2), "items: must be one id per row; "
              "row 0 is [1]"),
    "raters": (lambda: rw.Labels.from_long([1], [["a"]], [0], 2), "raters: must be one id per row"),
    "ragged labels": (lambda: rw.ece([0.5, 0.4], [[0, 1], [1]]),
                      "labels: must be an array of numbers with rows of one length; row 0 "
                      "has 2 values, row 1 has 1"),
    "labels": (lambda: rw.ece([0.5], rw.Labels), "labels: must be an array of numbers or words"),
}  # fmt: skip
TWO_RATERS = rw.Labels.from_counts([[1, 1]])


@pytest.mark.parametrize("case", WRONG_KINDS)
def test_what_is_of_another_kind_is_said(case: str) -> None:
    """A type that cannot be used is no error of Python deep inside: the argument is named."""
    call, words = WRONG_KINDS[case]
    with pytest.raises(rw.InvalidTypeError, match=re.escape(words)) as caught:
        call()
    assert isinstance(caught.value, TypeError)


def test_what_nobody_rated_is_left_out_wherever_it_is_asked_for() -> None:
    """The message says on_unrated="drop": every function of labels that says so takes it."""
    random = np.random.default_rng(0)
    p, counts = random.random(30), random.multinomial(3, [0.5, 0.5], 30)
    counts[7] = 0
    labels, kept = rw.Labels.from_counts(counts), np.arange(30) != 7
    rest, of_rest = p[kept], rw.Labels.from_counts(counts[kept])
    draws = np.clip(p + random.normal(0, 0.05, (6, 30)), 0, 1)
    plain: dict[str, Any] = {"resamples": 0}
    asked: dict[str, Any] = {
        "roc_curve": (lambda *a, **k: rw.roc_curve(*a, **plain, **k).area),
        "precision_recall_curve": (
            lambda *a, **k: rw.precision_recall_curve(*a, **plain, **k).precision.tolist()
        ),
        "decision_curve": (
            lambda *a, **k: rw.decision_curve(*a, **plain, **k).net_benefit.tolist()
        ),
        "calibration_curve": (
            lambda *a, **k: rw.calibration_curve(*a, **plain, **k).observed.tolist()
        ),
        "reliability_curve": (
            lambda *a, **k: rw.curves.reliability_curve(*a, **plain, **k).cases.tolist()
        ),
        "threshold_curve": (
            lambda *a, **k: rw.curves.threshold_curve(*a, **plain, **k).risk[1:].tolist()
        ),
        "total_variation": (
            lambda *a, **k: list(rw.stability.total_variation("ece", *a, repeats=2, **k))
        ),
        "subsample_curve": (
            lambda *a, **k: rw.stability.subsample_curve("ece", *a, repeats=2, **k).mean.tolist()
        ),
        "plan": (lambda *a, **k: rw.planning.plan("brier", *a, **k).designs[0].width),
        "robust_ece_mixture": (
            lambda q, *a, **k: rw.robust_ece_mixture(
                q, *a, draws if len(q) == 30 else draws[:, kept], **k
            )
        ),
    }
    for name, of in asked.items():
        with pytest.raises(rw.InvalidInputError, match='on_unrated="drop"'):
            of(p, labels)
        assert of(p, labels, on_unrated="drop") == pytest.approx(of(rest, of_rest)), name


def test_undefined_is_an_error_of_the_function_alone() -> None:
    """AUCCC where every case is right: the other metrics of `evaluate` go on."""
    with pytest.raises(rw.UndefinedMetricError):
        rw.auccc([0.2, 0.9], [0, 1])
    results = rw.evaluate([0.2, 0.9], [0, 1], ["auccc", "ece"], resamples=0)
    assert results["auccc"].value is None
    assert results["auccc"].undefined
    assert float(results["ece"]) == pytest.approx(0.15)
    for infinite in (rw.nll, rw.ranked_log_score):
        with pytest.raises(rw.UndefinedMetricError, match="it is infinite"):
            infinite([[1.0, 0.0]], [1])


def test_what_has_sixteen_bits_may_sum_less_exactly() -> None:
    """1e-2 for float16, also in a data frame or a list of arrays: 0.8999 + 0.1 is 0.9998."""
    half = np.array([[0.9, 0.1], [0.45, 0.5498]], np.float16)
    assert abs(half.astype(float).sum(axis=1) - 1).max() > 1e-4
    hand = float(((1 - half[:, 0].astype(float)) ** 2 + half[:, 1].astype(float) ** 2).sum() / 4)
    for given in (half, torch.tensor(half), pd.DataFrame(half), list(half)):
        assert rw.brier(given, [0, 0]) == pytest.approx(hand, abs=1e-7)


def test_the_mixtures_of_a_case_by_place() -> None:
    """`robust_ece_mixture(probs, labels, samples, components, seed)`, as the vocabulary has it."""
    random = np.random.default_rng(1)
    p, y = random.random(20), random.integers(0, 2, 20)
    draws = np.clip(p + random.normal(0, 0.1, (8, 20)), 0, 1)
    by_name = rw.robust_ece_mixture(p, y, samples=draws, components=2, seed=5, bins=15)
    assert rw.robust_ece_mixture(p, y, draws, 2, 5) == by_name


def test_anybodys_error_with_several_raters_takes_weights_of_cases() -> None:
    """One weight per case, as everywhere: sklearn's log loss with that of each case at each label.

    Case 0 (weight 3) has two labels of class 1 and one of class 0, case 1 (weight 1) one label.
    """
    labels = rw.Labels.from_counts([[1, 2], [1, 0], [0, 2]])
    probs, weights = [[0.4, 0.6], [0.7, 0.3], [0.5, 0.5]], [3.0, 1.0, 0.0]
    hand = -(3 * (math.log(0.4) + 2 * math.log(0.6)) + math.log(0.7)) / 10

    def theirs(q: Any, y: Any, weights: Any) -> float:
        assert type(q) is type(y) is type(weights)  # tensors come as tensors
        # Older versions of scikit-learn take no tensors.
        said, predicted, counted = (np.asarray(each) for each in (y, q, weights))
        return float(log_loss(said, predicted, sample_weight=counted, labels=[0, 1]))

    for given in (probs, torch.tensor(probs, dtype=torch.float64)):
        assert rw.multi_rater(theirs)(given, labels, weights=weights) == pytest.approx(hand)
    assert rw.multi_rater(rw.ece)(probs, labels, weights=weights) == pytest.approx(
        rw.ece(probs, labels, weights=weights)
    )


@pytest.mark.parametrize("classes", [2, 3, 22])
def test_a_model_that_is_certain_of_every_case(classes: int) -> None:
    """Probabilities of 0 and 1 alone: the error is that of its labels, and there is a verdict."""
    random = np.random.default_rng(classes)
    said, predicted = random.integers(0, classes, (2, 30))
    found = rw.evaluate(np.eye(classes)[predicted], said, ["ece", "accuracy"], resamples=20)
    assert float(found["ece"]) == pytest.approx(np.mean(said != predicted))
    assert float(found["accuracy"]) == pytest.approx(np.mean(said == predicted))
    assert found.data["verdict"]["sentence"]


def test_one_patient_is_nothing_to_compare_by() -> None:
    """A single case, or several of one patient: a clear refusal and no division by zero."""
    for probs, patients in (([0.3], None), ([0.3, 0.8], ["ann", "ann"])):
        models = {"a": probs, "b": [0.5] * len(probs)}
        with pytest.raises(rw.InvalidInputError, match="models: need at least two patients"):
            rw.compare(models, [1] * len(probs), "brier", resamples=10, groups=patients)


def test_one_case_is_no_pilot_and_no_evidence() -> None:
    """A plan and the check of α-calibration say so, instead of a failure inside."""
    with pytest.raises(rw.InvalidInputError, match="probs: the pilot must hold at least 2 cases"):
        rw.planning.plan("brier", [0.4], TWO_RATERS)
    with pytest.raises(rw.InvalidInputError, match="labels: needs two patients"):
        rw.alpha_can_help([0.4], TWO_RATERS)


def test_a_label_that_no_member_expects_leaves_the_other_metrics() -> None:
    """Members that are certain of class 0: what a label of class 1 would teach is undefined."""
    samples = np.array([[[1.0, 0.0]] * 3, [[1.0, 0.0], [0.5, 0.5], [1.0, 0.0]]])
    labels = rw.Labels.from_counts([[2, 1], [1, 2], [3, 0]])
    names = ["ece", "prior_epistemic_loss", "posterior_epistemic_loss", "posterior_gain"]
    found = rw.evaluate(rw.EnsembleBelief(samples), labels, names, resamples=10)
    assert float(found["ece"]) == pytest.approx(rw.ece(samples.mean(axis=0), labels))
    assert found["prior_epistemic_loss"].value is not None
    for name in names[2:]:
        assert "no member of the ensemble" in (found[name].undefined or "")
    rest = rw.evaluate(rw.EnsembleBelief(samples[:, 1:]), labels[1:], names, resamples=0)
    assert rest["posterior_epistemic_loss"].value is not None


def test_a_finding_with_one_patient_leaves_the_mean_without_an_interval() -> None:
    """Of finding b one patient alone has two ratings: the value is there, its noise is not."""
    raters = np.array([[2, 1], [2, 2], [2, 1]])
    found = rw.evaluate_multilabel(
        np.array([[0.2, 0.4], [0.7, 0.6], [0.5, 0.9]]), np.array([[1, 1], [1, 1], [0, 1]]), raters,
        ["a", "b"], "disagreement_calibration_error", groups=[1, 2, 3], resamples=10,
        on_single="drop",
    )  # fmt: skip
    mean = found["disagreement_calibration_error"]
    each = [one["disagreement_calibration_error"].value for one in found.findings.values()]
    assert mean.value == pytest.approx(np.mean(each))
    assert mean.low is None


def test_raters_who_rated_nothing_are_not_drawn() -> None:
    """A column without a rating changes nothing, and a lone rater is no sample of raters."""
    random = np.random.default_rng(2)
    probs, ratings = random.dirichlet(np.ones(3), 25), random.integers(0, 3, (25, 3))
    idle = np.insert(ratings, 1, -1, axis=1)
    one, other = (
        rw.evaluate(
            probs, rw.Labels.from_ratings(r, 3), ["ece", "auccc"], resamples=30, unit="raters"
        )
        for r in (ratings, idle)
    )
    for name in ("ece", "auccc"):
        assert (one[name].low, one[name].high) == (other[name].low, other[name].high)
    alone = rw.Labels.from_ratings(np.where(np.arange(3) == 1, ratings, -1), 3)
    for unit in ("raters", "both"):
        with pytest.raises(rw.InvalidInputError, match='unit: "raters" needs several raters'):
            rw.evaluate(probs, alone, "ece", resamples=30, unit=unit)


def test_an_interval_ends_where_the_metric_does() -> None:
    """Of two or three cases: a Brier score is at most 2, a ratio overflows nothing."""
    for seed in range(30):
        random = np.random.default_rng(seed)
        p = random.dirichlet([0.3, 0.3], int(random.integers(2, 6)))
        labels = rw.Labels.from_ratings(random.integers(0, 2, (len(p), 3)), 2)
        names = ["brier", "epistemic_loss", "observed_expected_ratio"]
        found = rw.evaluate(p, labels, names, resamples=20)
        for name in names[:2]:
            assert found[name].high is not None
            assert float(found[name]) <= found[name].high <= 2
        assert found[names[2]].high is None or math.isfinite(found[names[2]].high)
    # Student's quantile of one degree of freedom is 31,831 here: no float holds its exponential.
    sure = rw.Labels.from_counts([[0, 3], [2, 1]])
    wide = rw.evaluate([0.6, 0.7], sure, names[2], resamples=20, level=0.99998)[names[2]]
    assert wide.high is not None and float(wide) < wide.high < math.inf


def test_modules_of_torch_need_no_import_of_their_own() -> None:
    """`rw.torch.losses` after `import raterwise` alone, in an interpreter that has seen nothing."""
    code = "import raterwise as rw; print([getattr(rw.torch, m).__name__ for m in dir(rw.torch)])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "raterwise.torch.losses" in done.stdout


def test_losses_and_metrics_of_torch() -> None:
    """All take (logits, targets); a metric in a loop says what the function says."""
    torch.manual_seed(0)
    logits, classes = torch.randn(40, 3, requires_grad=True), torch.randint(0, 3, (40,))
    histogram = losses.HistogramCrossEntropy()
    every = [losses.FocalLoss(2.0), losses.FLSD(gamma=3), losses.MDCA(), losses.DCA(),
             losses.RCR(sigma=0.1, normalization="smooth"), losses.MMCE(), histogram,
             losses.Regularized(histogram, losses.MDCA(), 0.5)]  # fmt: skip
    for loss in every:
        (slope,) = torch.autograd.grad(loss(logits, classes), logits)
        assert torch.isfinite(slope).all()
    entropy = torch.nn.functional.cross_entropy(logits, classes).item()
    assert histogram(logits, classes).item() == pytest.approx(entropy)
    one, other = (losses.RCR(sigma=s, normalization="paper")(logits, classes) for s in (0.1, 0.5))
    assert one.item() == pytest.approx(other.item())
    probs = logits.detach().double().softmax(1)
    for name, function in (("ECE", rw.ece), ("Brier", rw.brier), ("NLL", rw.nll)):
        metric = getattr(metrics, name)(num_classes=3)
        metric.update(probs[:20], classes[:20])
        metric.update(probs[20:], torch.nn.functional.one_hot(classes[20:], 3))
        assert float(metric.compute()) == pytest.approx(function(probs, classes))
    net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(0.5))
    drawn = ensembles.mc_dropout(net, torch.randn(4, 3), samples=5, seed=0, progress=False)
    assert drawn.samples.shape == (5, 4, 3)


KEYS = {"schema_version", "metrics", "data", "options", "provenance", "versions"}
COMMON = "--metrics ece,brier --option ece.bins=10 --per annotation --resamples 10 --seed 1 -q"


def run(command: str, code: int = 0) -> None:
    """Run a command, which should end with this code."""
    done = CliRunner().invoke(app, command.split())
    assert done.exit_code == code, done.output


def check_page_and_json(name: str, keys: set[str] = KEYS) -> None:
    """The page is a page, the JSON has what is promised."""
    assert "<html" in Path(f"{name}.html").read_text(encoding="utf-8")
    content = json.loads(Path(f"{name}.json").read_text(encoding="utf-8"))
    assert keys <= set(content)
    if keys == KEYS:
        assert {"cases", "raters", "classes", "dropped"} <= set(content["data"])
        assert {"value", "low", "high"} <= set(content["metrics"]["ece"])


def test_commands_write_json_and_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--out` and `--html` of evaluate, compare, merge and segment."""
    monkeypatch.chdir(tmp_path)
    probs, labels = messy(1, 3, 3, 40)
    table = {f"prob_{k}": probs[:, k] for k in range(3)}
    table |= {f"count_{k}": labels.counts[:, k] for k in range(3)}
    for name, order in (("a", slice(None)), ("b", slice(None, None, -1))):
        own = {f"prob_{k}": probs[order, k] for k in range(3)}
        pl.DataFrame(table | own).write_parquet(f"{name}.parquet")
        run(f"evaluate {name}.parquet --count-prefix count_ {COMMON} --stream --out {name}.json "
            f"--save-summary {name}.npz" + (" --html a.html" if name == "a" else ""))  # fmt: skip
    check_page_and_json("a")
    run("compare a.json b.json -q --out c.json --html c.html")
    check_page_and_json("c", {"schema_version"})
    run("merge a.npz b.npz --resamples 10 -q --out m.json --html m.html")
    check_page_and_json("m")
    np.save("p.npy", np.random.default_rng(0).dirichlet([1, 1], (4, 4)).transpose(2, 0, 1))
    np.save("r.npy", np.random.default_rng(0).integers(0, 2, (4, 4)))
    Path("images.csv").write_text("case,probabilities,raters\n1,p.npy,r.npy\n", encoding="utf-8")
    run(f"segment images.csv {COMMON} --out s.json --html s.html")
    check_page_and_json("s")
    run("report a.json --html r.html")
    assert "<html" in Path("r.html").read_text(encoding="utf-8")
    run("segment images.csv --html s.txt", code=2)
    run("merge a.npz --html m.txt", code=2)
    run("compare a.json b.json --html c.txt", code=2)


def test_other_json_says_how_it_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Agreement, stability and plans: the seed, the command, its files by their sums."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    p, said = random.random(60), random.integers(0, 2, (60, 2))
    names = {"case": np.arange(60)}
    pl.DataFrame(names | {"prob_0": 1 - p, "prob_1": p}).write_csv("p.csv")
    pl.DataFrame(names | {"rater_a": said[:, 0], "rater_b": said[:, 1]}).write_csv("r.csv")
    run("agreement r.csv --resamples 10 --seed 1 -q --out a.json")
    run("stability p.csv --ratings r.csv --metrics ece --repeats 2 --seed 1 -q --out s.json")
    run("plan brier p.csv --ratings r.csv --cases 40 --raters 1,2 --repeats 2 --resamples 10 "
        "--seed 1 -q --out d.json")  # fmt: skip
    for name, inputs in (("a", ["r.csv"]), ("s", ["p.csv", "r.csv"]), ("d", ["p.csv", "r.csv"])):
        content = json.loads(Path(f"{name}.json").read_text(encoding="utf-8"))
        assert {"schema_version", "options", "provenance", "versions"} <= set(content), name
        assert content["options"]["seed"] == 1
        assert [file["name"] for file in content["provenance"]["inputs"]] == inputs
    agreement = json.loads(Path("a.json").read_text(encoding="utf-8"))
    assert agreement["data"]["classes"] == 2
    assert agreement["data"]["dropped"] == {"single": 0}


def test_every_metric_has_a_public_function() -> None:
    """But for those of a belief that `evaluate` alone has."""
    without = [name for name in CATALOG if not hasattr(rw, name)]
    assert all(CATALOG[name].needs_belief for name in without)
    assert hasattr(rw.confidence, "io_auroc")
