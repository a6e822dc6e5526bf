"""Metrics as torchmetrics, and the tensor kernels behind them: one table, whatever the device."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import raterwise as rw
from golden import ROBUST, GoldenValue, values

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("torchmetrics", reason="torchmetrics is not installed")

from raterwise.catalog import CATALOG  # noqa: E402
from raterwise.errors import InvalidInputError, InvalidTypeError, UndefinedMetricError  # noqa: E402
from raterwise.kernels import _torch as kernels  # noqa: E402
from raterwise.predictions import Predictions  # noqa: E402
from raterwise.summaries import one_pass  # noqa: E402
from raterwise.summaries.cells import fine_cells  # noqa: E402
from raterwise.tensors import cases as tensor_cases  # noqa: E402
from raterwise.tensors import device  # noqa: E402
from raterwise.torch import metrics  # noqa: E402

torch.set_num_threads(1)


@pytest.fixture(
    params=[
        "compiled loops",
        "tensors",
        pytest.param(
            "cuda",
            marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA GPU"),
        ),
    ]
)
def where(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The device: the CPU with its compiled loops, or with tensor operations alone, or a GPU."""
    if request.param == "tensors":
        monkeypatch.setattr(device, "has_cpu_loops", lambda: False)
    return "cuda" if request.param == "cuda" else "cpu"


close = 1e-9


def comparable(golden: GoldenValue) -> bool:
    """No probability lies on an edge, where the released code has another rule; Gaussians only."""
    gaussian = golden.params.get("distr", "gaussian") == "gaussian"
    return gaussian and not golden.data.has_edge_scores


def saturated(
    cases: int = 500, classes: int = 4, seed: int = 0, dtype: Any = np.float64
) -> tuple[Any, Any, Any]:
    """Probabilities of which many are near 0 and 1, with classes and label counts."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(cases, classes)) * rng.choice([1, 5, 40], size=(cases, 1))
    probs = np.exp(logits - logits.max(axis=1, keepdims=True))
    probs /= probs.sum(axis=1, keepdims=True)
    counts = np.array([rng.multinomial(rng.integers(2, 7), p) for p in 0.7 * probs + 0.3 / classes])
    return probs.astype(dtype), counts.argmax(axis=1), counts


BINNED: dict[str, tuple[Callable[..., Any], Callable[..., float]]] = {
    "ece": (metrics.ECE, rw.ece),
    "mce": (metrics.MCE, rw.mce),
    "rms_ce": (metrics.RMSCE, rw.rms_ce),
    "classwise_ece": (metrics.ClasswiseECE, rw.classwise_ece),
    "sce": (metrics.SCE, rw.sce),
    "robust_ece": (metrics.RobustECE, rw.robust_ece),
}
each_binned = pytest.mark.parametrize(("make", "function"), BINNED.values(), ids=BINNED.keys())

# equal to the functions ----------------------------------------------------------------------


@each_binned
@pytest.mark.parametrize("batch", [1, 7, 500])
def test_any_batching_gives_the_number_of_the_function(
    make: Callable[..., Any], function: Callable[..., float], batch: int, where: str
) -> None:
    """Single labels in batches of 1, 7 and 500."""
    probs, classes, _ = saturated(60 if batch == 1 else 500)
    metric = make(num_classes=4).to(where)
    for start in range(0, len(probs), batch):
        part = slice(start, start + batch)
        metric.update(torch.tensor(probs[part]).to(where), torch.tensor(classes[part]).to(where))
    assert metric.compute().item() == pytest.approx(function(probs, classes), rel=0, abs=close)


@each_binned
def test_several_raters_and_weights(
    make: Callable[..., Any], function: Callable[..., float], where: str
) -> None:
    """Label counts, case weights, and cases that count once."""
    probs, _, counts = saturated(dtype=np.float32)
    weights = np.random.default_rng(1).random(500)
    for per in ("annotation", "case"):
        metric = make(num_classes=4, per=per).to(where)
        metric.update(torch.tensor(probs).to(where), torch.tensor(counts).to(where), weights)
        expected = function(probs, rw.Labels.from_counts(counts), per=per, weights=weights)
        assert metric.compute().item() == pytest.approx(expected, rel=0, abs=close)


@values("ECE", "SCE", "RECE_G_allbins", repository=ROBUST, where=comparable)
def test_errors_of_released_code(golden: GoldenValue) -> None:
    """RECE's own numbers, in batches; its SCE is what others call class-wise ECE."""
    data, bins = golden.data, golden.bins
    metric = {
        "ECE": lambda: metrics.ECE(data.num_classes, bins),
        "SCE": lambda: metrics.ClasswiseECE(data.num_classes, bins),
        "RECE_G_allbins": lambda: metrics.RobustECE(data.num_classes, bins, golden.params["sigma"]),
    }[golden.what]()
    for start in range(0, len(data.probs), 64):
        part = slice(start, start + 64)
        metric.update(torch.tensor(data.probs[part]), torch.tensor(data.classes[part]))
    assert metric.compute().item() == golden.approx()


def test_label_histogram_losses() -> None:
    """Every loss by the name of its function, over batches."""
    probs, _, counts = saturated()
    labels = rw.Labels.from_counts(counts)
    metric = metrics.LabelHistogramLosses(num_classes=4)
    for part in (slice(0, 123), slice(123, 500)):
        metric.update(torch.tensor(probs[part]), torch.tensor(counts[part]))
    got = metric.compute()
    disagreement = 1 - (probs**2).sum(axis=1)
    expected = {
        "expected_squared_loss": rw.expected_squared_loss(probs, labels),
        "epistemic_loss": rw.epistemic_loss(probs, labels),
        "irreducible_loss": rw.irreducible_loss(labels),
        "calibration_loss": rw.calibration_loss(probs, labels),
        "calibration_error": rw.calibration_error(probs, labels),
        "dispersion_loss": rw.dispersion_loss(probs, labels),
        "disagreement_loss": rw.disagreement_loss(disagreement, labels),
        "disagreement_calibration_loss": rw.disagreement_calibration_loss(disagreement, labels),
        "disagreement_calibration_error": rw.disagreement_calibration_error(disagreement, labels),
    }
    assert {name: value.item() for name, value in got.items()} == pytest.approx(expected, abs=close)


def test_single_labels_among_histograms() -> None:
    """Cases with one label are an error, or are left out where two are needed."""
    probs = torch.tensor([[0.5, 0.5], [0.9, 0.1], [0.2, 0.8]], dtype=torch.float64)
    counts = torch.tensor([[2, 1], [1, 0], [0, 3]])
    with pytest.raises(InvalidInputError, match="needs at least 2 labels per case"):
        metrics.LabelHistogramLosses(2).update(probs, counts)
    metric = metrics.LabelHistogramLosses(2, on_single="drop")
    metric.update(probs, counts)
    paired = rw.Labels.from_counts(counts[[0, 2]])
    value = rw.epistemic_loss(probs[[0, 2]], paired)
    assert metric.compute()["epistemic_loss"].item() == pytest.approx(value, abs=close)
    every = rw.expected_squared_loss(probs, rw.Labels.from_counts(counts))
    assert metric.compute()["expected_squared_loss"].item() == pytest.approx(every, abs=close)
    alone = metrics.LabelHistogramLosses(2, on_single="drop")
    alone.update(probs, torch.tensor([0, 0, 1]))
    assert alone.compute()["epistemic_loss"].isnan()


@pytest.mark.parametrize("checked", [True, False])  # by the loops for the CPU, by those of PyTorch
def test_weights_stay_with_their_cases_where_single_labels_are_left_out(checked: bool) -> None:
    """By hand, weights 3 and 1: losses 0 and 0.08, disagreement 1 and 0, predicted 0.5 and 0.32."""
    metric = metrics.LabelHistogramLosses(
        2, estimator="plugin", on_single="drop", validate_args=checked
    )
    probs = torch.tensor([[0.5, 0.5], [0.9, 0.1], [0.8, 0.2]], dtype=torch.float64)
    metric.update(probs, torch.tensor([[1, 1], [1, 0], [2, 0]]), torch.tensor([3.0, 5.0, 1.0]))
    got = metric.compute()
    assert got["epistemic_loss"].item() == pytest.approx(0.08 / 4)
    assert got["irreducible_loss"].item() == pytest.approx(3 / 4)
    assert got["disagreement_loss"].item() == pytest.approx((3 * 0.5**2 + 0.32**2) / 4)


@pytest.mark.parametrize("estimator", ["debiased", "plugin"])
def test_epistemic_loss_follows_the_estimator(estimator: str) -> None:
    """The plug-in is not the unbiased one, and both are of the cases with two labels."""
    probs = torch.tensor([[0.5, 0.5], [0.9, 0.1], [0.2, 0.8]], dtype=torch.float64)
    metric = metrics.LabelHistogramLosses(2, bins=1, estimator=estimator, on_single="drop")
    metric.update(probs, torch.tensor([[2, 1], [1, 0], [0, 3]]))
    # (2/3 - 1/2)² twice, 0.2² twice; unbiased: less 2 · (2/3)(1/3)/(3 - 1), LH eqs 9-10.
    plugin = (1 / 18 + 0.08) / 2
    expected = plugin - (0 if estimator == "plugin" else (2 / 9) / 2)
    got = metric.compute()
    assert got["epistemic_loss"].item() == pytest.approx(expected, abs=close)
    if estimator == "plugin":  # DL = EL - CL, LH eq 33, with both of the same cases
        calibration = 2 * ((2 / 3 + 0) / 2 - (0.5 + 0.2) / 2) ** 2
        assert got["dispersion_loss"].item() == pytest.approx(plugin - calibration, abs=close)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_auccc_is_within_its_bound(dtype: Any, where: str) -> None:
    """Fine cells: the exact area lies within the bound, and the bound is small."""
    probs, classes, _ = saturated(2000, dtype=dtype)
    metric = metrics.AUCCC(num_classes=4).to(where)
    for part in (slice(0, 700), slice(700, 2000)):
        metric.update(torch.tensor(probs[part]).to(where), torch.tensor(classes[part]).to(where))
    exact = rw.auccc(probs, classes)
    bound = metric.bound.item()
    assert abs(metric.compute().item() - exact) <= bound + 1e-12
    assert bound < 0.02  # most of it is confidences that round to 1, and are tied indeed


def test_auccc_with_coarse_ties_is_wrong_by_no_more_than_its_bound() -> None:
    """Confidences that differ within one cell: the bound is met with equality."""
    edges = fine_cells()
    low, high = edges[4000], edges[4001]
    right, wrong = low + 0.75 * (high - low), low + 0.25 * (high - low)
    metric = metrics.AUCCC(num_classes=2)
    confidence = torch.tensor([right, wrong], dtype=torch.float64)
    metric.update(torch.tensor([0.1, 0.9]), torch.tensor([0, 0]), confidence=confidence)
    assert rw.confidence.auccc([right, wrong], [1, 0]) == 1
    assert metric.compute().item() == 0.5
    assert metric.bound.item() == 0.5


def test_auccc_of_several_raters_and_outside_cases() -> None:
    """A case is right by the fraction of its raters; out-of-distribution cases are wrong."""
    probs = torch.tensor([[0.9, 0.1], [0.3, 0.7], [0.55, 0.45]], dtype=torch.float64)
    counts = torch.tensor([[3, 1], [0, 2], [1, 3]])
    metric = metrics.AUCCC(num_classes=2)
    metric.update(probs, counts)
    metric.update(torch.tensor([[0.6, 0.4], [0.7, 0.3]]), None)
    expected = rw.confidence.auccc(
        [0.9, 0.7, 0.55, 0.6, 0.7], [0.75, 1.0, 0.25, 0.0, 0.0], weights=[4, 2, 4, 1, 1]
    )
    same = rw.auccc(probs, rw.Labels.from_counts(counts), outside=[[0.6, 0.4], [0.7, 0.3]])
    assert same == pytest.approx(expected, abs=1e-12)
    assert metric.compute().item() == pytest.approx(expected, abs=metric.bound.item() + 1e-12)


def test_cases_from_elsewhere_count_whatever_class_is_ignored() -> None:
    """They have no class: with any class ignored, or none, they are the same wrong cases."""
    probs = torch.tensor([[0.1, 0.8, 0.1], [0.2, 0.1, 0.7]])
    elsewhere = torch.tensor([[0.75, 0.2, 0.05]])
    for ignored in (None, 0, 1):
        metric = metrics.AUCCC(num_classes=3, ignore_index=ignored)
        metric.update(probs[:1] if ignored != 1 else probs[1:], [1 if ignored != 1 else 2])
        metric.update(elsewhere, None)
        # 0.8 is above 0.75, and 0.7 below it.
        assert metric.compute().item() == (1.0 if ignored != 1 else 0.0)


def test_dense_outputs_and_ignored_pixels() -> None:
    """(N, K, H, W) with a class that does not count, and label counts of several raters."""
    probs, classes, counts = saturated(48)
    classes[5:9] = 255
    kept = classes != 255
    dense = torch.tensor(probs).reshape(2, 4, 6, 4).movedim(-1, 1)
    metric = metrics.ECE(num_classes=4, ignore_index=255)
    metric.update(dense, torch.tensor(classes).reshape(2, 4, 6))
    expected = rw.ece(probs[kept], classes[kept])
    assert metric.compute().item() == pytest.approx(expected, abs=close)
    several = metrics.ECE(num_classes=4)
    several.update(dense, torch.tensor(counts).reshape(2, 4, 6, 4).movedim(-1, 1))
    expected = rw.ece(probs, rw.Labels.from_counts(counts))
    assert several.compute().item() == pytest.approx(expected, abs=close)


def test_positive_class_of_two() -> None:
    """(N,) probabilities of class 1, for any question."""
    p, y = [0.1, 0.1, 0.7, 1.0, 0.0], [0, 1, 1, 1, 0]
    metric = metrics.ECE(num_classes=2, question="positive", bins=10)
    metric.update(torch.tensor(p, dtype=torch.float64), torch.tensor(y))
    expected = rw.ece(p, y, question="positive", bins=10)
    assert metric.compute().item() == pytest.approx(expected, abs=close)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])
def test_sixteen_bit_probabilities(dtype: torch.dtype) -> None:
    """They are read as they are, and summed in float64."""
    probs, classes, _ = saturated(300)
    half = torch.tensor(probs).to(dtype)
    metric = metrics.ECE(num_classes=4)
    metric.update(half, torch.tensor(classes))
    assert metric.tables["sums"].dtype == torch.float64
    assert metric.compute().item() == pytest.approx(rw.ece(half, classes), abs=close)


def test_ten_million_equal_cases_are_summed_in_double() -> None:
    """A float32 sum of 2^24 ones stops growing; ours does not."""
    metric = metrics.ECE(num_classes=2)
    batch = torch.full((1 << 20,), 0.75)
    labels = torch.zeros(1 << 20, dtype=torch.long)
    for _ in range(3):
        metric.update(batch, labels)
    metric.tables["sums"].mul_(8)
    assert metric.tables["sums"][0, :, 0].sum().item() == 3 * 2**23
    assert metric.compute().item() == pytest.approx(0.75, abs=1e-12)


# torchmetrics --------------------------------------------------------------------------------


def test_forward_reset_and_state() -> None:
    """`metric(batch)` is the value of the batch, `compute` of all; the state never grows."""
    probs, classes, _ = saturated(100)
    p, y = torch.tensor(probs), torch.tensor(classes)
    metric = metrics.ECE(num_classes=4)
    assert metric(p[:40], y[:40]).item() == pytest.approx(rw.ece(probs[:40], classes[:40]))
    assert metric(p[40:], y[40:]).item() == pytest.approx(rw.ece(probs[40:], classes[40:]))
    assert metric.compute().item() == pytest.approx(rw.ece(probs, classes), abs=close)
    assert metric.tables["sums"].shape == (1, 15, 8)
    metric.reset()
    assert metric.tables["sums"].abs().sum() == 0


def test_saved_state_goes_on() -> None:
    """A persistent state, saved and loaded, continues where it was."""
    probs, classes, _ = saturated(100)
    p, y = torch.tensor(probs), torch.tensor(classes)
    first = metrics.ECE(num_classes=4)
    first.persistent(True)
    first.update(p[:50], y[:50])
    second = metrics.ECE(num_classes=4)
    second.persistent(True)
    second.load_state_dict(first.state_dict())
    second.update(p[50:], y[50:])
    assert second.compute().item() == pytest.approx(rw.ece(probs, classes), abs=close)


def test_tables_of_batches_add_up() -> None:
    """`tables_of` leaves the state alone; the sum of tables is the table of all."""
    probs, classes, _ = saturated(100)
    p, y = torch.tensor(probs), torch.tensor(classes)
    metric = metrics.ECE(num_classes=4)
    parts = [metric.tables_of(p[i : i + 30], y[i : i + 30]) for i in range(0, 100, 30)]
    assert metric.tables["sums"].abs().sum() == 0
    total = {"sums": sum(part["sums"] for part in parts)}
    expected = rw.ece(probs, classes)
    assert metric.compute_from(total).item() == pytest.approx(expected, abs=close)


def two_processes(rank: int, folder: str) -> None:
    """Half of the cases on each process; the first writes what both have together."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo",
        init_method=Path(folder, "meet").as_uri(),
        rank=rank,
        world_size=2,
        timeout=timedelta(seconds=90),
    )
    probs, classes, counts = saturated()
    mine = slice(rank, None, 2)
    ece, losses, auccc = (
        metrics.ECE(num_classes=4),
        metrics.LabelHistogramLosses(num_classes=4),
        metrics.AUCCC(num_classes=4),
    )
    ece.update(torch.tensor(probs[mine]), torch.tensor(classes[mine]))
    losses.update(torch.tensor(probs[mine]), torch.tensor(counts[mine]))
    auccc.update(torch.tensor(probs[mine]), torch.tensor(classes[mine]))
    values = [ece.compute().item(), losses.compute()["epistemic_loss"].item()]
    values += [auccc.compute().item(), auccc.bound.item()]
    ece.sync()
    table = ece.tables["sums"].numpy()
    ece.unsync()
    np.savez(Path(folder, f"rank{rank}.npz"), values=values, table=table)
    torch.distributed.destroy_process_group()


def test_two_processes_are_one(tmp_path: Path) -> None:
    """Two processes that synchronise have the table of one, up to the order of additions."""
    other = torch.multiprocessing.get_context("spawn").Process(
        target=two_processes, args=(1, str(tmp_path))
    )
    other.start()
    two_processes(0, str(tmp_path))
    other.join(60)
    assert other.exitcode == 0
    probs, classes, counts = saturated()
    whole = metrics.ECE(num_classes=4)
    whole.update(torch.tensor(probs), torch.tensor(classes))
    single = metrics.AUCCC(num_classes=4)
    single.update(torch.tensor(probs), torch.tensor(classes))
    for rank in range(2):
        with np.load(tmp_path / f"rank{rank}.npz") as got:
            np.testing.assert_allclose(got["table"], whole.tables["sums"], rtol=1e-13, atol=1e-13)
            np.testing.assert_array_equal(got["table"][..., 0], whole.tables["sums"][..., 0])
            expected = [
                rw.ece(probs, classes),
                rw.epistemic_loss(probs, rw.Labels.from_counts(counts)),
                single.compute().item(),
                single.bound.item(),
            ]
            np.testing.assert_allclose(got["values"], expected, rtol=0, atol=1e-12)


# errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("probs", "labels", "message"),
    [
        ([[0.9, 0.3]], [0], "probs: rows must sum to 1 within 1e-4; row 0 sums to 1.2"),
        ([[0.5, 0.5], [1.5, -0.5]], [0, 0], "probs: must lie in .* row 1 holds 1.5 .logits need"),
        ([[0.5, 0.5], [float("nan"), 0.5]], [0, 0], "NaN; 1 values are NaN, the first in row 1"),
        ([[0.5, 0.5]], [2], "labels: must be classes 0 … 1; entry 0 is 2"),
        ([[0.5, 0.5]], [[1, -1]], "label counts must not be negative; case 0, class 1 has -1"),
        ([[0.5, 0.5]], [[0.5, 0.5]], "labels: must be whole numbers; got 0.5"),
        ([[0.5, 0.5]], [[0, 0]], "every case needs a rating; 1 of 1 has none .case 0"),
        ([[0.5, 0.5]], [0, 1], "labels: must match probs; got 2 labels for 1 cases"),
        ([[0.2, 0.3, 0.5]], [0], "probs: must have num_classes = 2 classes; got 3"),
        ([[1.0]], [0], r"probs: must have at least 2 classes.*got shape \(1, 1\)"),
    ],
)
def test_wrong_values(probs: Any, labels: Any, message: str, where: str) -> None:
    """The message names the argument, the rule and the value; the state stays as it was."""
    metric = metrics.ECE(num_classes=2).to(where)
    with pytest.raises(InvalidInputError, match=message):
        metric.update(torch.tensor(probs).to(where), torch.tensor(labels).to(where))
    assert metric.tables["sums"].abs().sum() == 0


def test_wrong_types_and_options() -> None:
    """Types, weights, confidences and options are checked."""
    probs, labels = torch.tensor([[0.5, 0.5]]), torch.tensor([0])
    with pytest.raises(InvalidTypeError, match="probs: must be an array of numbers; got dtype com"):
        metrics.ECE(2).update(torch.tensor([[1j, 0]]), labels)
    with pytest.raises(InvalidInputError, match=r"labels: must be whole numbers; got 0\.5"):
        metrics.ECE(2).update(probs, torch.tensor([0.5]))
    with pytest.raises(InvalidInputError, match="weights: must have one value per case"):
        metrics.ECE(2).update(probs, labels, weights=[1.0, 2.0])
    with pytest.raises(InvalidInputError, match="weights: must be finite and not negative"):
        metrics.ECE(2).update(probs, labels, weights=[-1.0])
    with pytest.raises(InvalidInputError, match="confidence: must have one value per case"):
        metrics.AUCCC(2).update(probs, labels, confidence=[0.1, 0.2])
    with pytest.raises(InvalidInputError, match=r"confidence: must lie in \[0, 1\]"):
        metrics.AUCCC(2).update(probs, labels, confidence=[1.1])
    with pytest.raises(InvalidInputError, match="sigma: must be positive and finite; got 0"):
        metrics.RobustECE(2, sigma=0)
    with pytest.raises(InvalidInputError, match="num_classes: must be at least 2; got 1"):
        metrics.ECE(1)
    with pytest.raises(InvalidInputError, match="question: must be one of"):
        metrics.ECE(2, question="any")


@pytest.mark.filterwarnings("ignore:The ``compute`` method of metric")
def test_undefined() -> None:
    """No case yet, or every case right, is no number."""
    for name, empty in (
        ("ece", metrics.ECE(2)),
        ("auccc", metrics.AUCCC(2)),
        ("auroc", metrics.AUROC(3)),
    ):
        with pytest.raises(UndefinedMetricError, match=f"{name}: undefined, no case was given yet"):
            empty.compute()
    metric = metrics.AUCCC(2)
    metric.update(torch.tensor([[0.9, 0.1]]), torch.tensor([0]))
    with pytest.raises(UndefinedMetricError, match="auccc: undefined, every prediction is right"):
        metric.compute()


def test_unrated_cases_can_be_dropped() -> None:
    """With on_unrated="drop" a case without labels is not there."""
    metric = metrics.ECE(2, on_unrated="drop")
    metric.update(torch.tensor([[0.9, 0.1], [0.5, 0.5]]), torch.tensor([[2, 0], [0, 0]]))
    assert metric.compute().item() == pytest.approx(0.1, abs=1e-6)


# summaries on the device ---------------------------------------------------------------------

ON_DEVICE = [
    name
    for name, row in CATALOG.items()
    if device.can_summarise(row.plan(row.options)) and not row.needs
]


@pytest.mark.parametrize("name", [n for n in ON_DEVICE if "of_cases" not in CATALOG[n].tags])
def test_the_device_gives_the_number_of_the_host(name: str, where: str) -> None:
    """Every metric of the catalog with such a summary, with weights; ranks and quantiles too.

    Kernel errors leave out single cases, which merged scores no longer have.
    """
    probs, _, counts = saturated(300)
    weights = np.random.default_rng(2).integers(1, 4, 300).astype(float)
    if CATALOG[name].options.get("estimator") == "debiased" or "disagree" in name:
        weights = np.ones(300)
    labels = rw.Labels.from_counts(counts)
    row = CATALOG[name]
    options = row.with_defaults({"clip": 1e-7})  # log odds of 0 and 1 are infinite
    plan = row.plan(options)
    host = one_pass.summarise(Predictions.of(probs, labels, weights=weights), [plan])[plan]
    tensor = torch.tensor(probs).to(where)
    there = device.summarise(tensor, torch.tensor(counts).to(where), [plan], weights=weights)[plan]
    expected = row.estimate(host, options)
    assert row.estimate(there, options) == pytest.approx(expected, rel=0, abs=close)


def test_the_device_gives_the_table_of_the_host(where: str) -> None:
    """Scores of 0, 1 and on every edge fall into the same bins, for each question."""
    from raterwise.questions import Question
    from raterwise.summaries import BinPlan

    p = np.concatenate((np.linspace(0, 1, 16), np.nextafter(np.linspace(0, 1, 16), 0)[1:]))
    probs = np.stack((p, 1 - p), axis=1)
    labels = np.arange(len(p)) % 2
    for question in ("top_label", "positive", "per_class", "predicted_class"):
        plan = BinPlan(Question(question))
        host = one_pass.summarise(Predictions.of(probs, labels), [plan])[plan]
        there = device.summarise(torch.tensor(probs).to(where), labels, [plan])[plan]
        np.testing.assert_allclose(there.sums, host.sums, rtol=0, atol=1e-13)
        np.testing.assert_array_equal(there.sums[..., 0], host.sums[..., 0])


@pytest.mark.parametrize("rows", [1, 100, kernels.BLOCK, 2 * kernels.BLOCK + 3])
def test_three_ways_to_sum(rows: int, where: str) -> None:
    """Products, copies and bincount give what adding one by one gives; one hot cell or many."""
    rng = np.random.default_rng(rows)
    for cells in (1, 15, 500):
        cell = np.where(rng.random(rows) < 0.9, 0, rng.integers(cells, size=rows))
        fields = rng.random((rows, 3))
        expected = np.zeros((cells, 3))
        np.add.at(expected, cell, fields)
        given = torch.tensor(cell).to(where), torch.tensor(fields).to(where), cells
        for way in (kernels.product_sums, kernels.copied_sums, kernels.sums_by_cell):
            np.testing.assert_allclose(way(*given).cpu(), expected, rtol=1e-12, atol=1e-12)


def test_concordance_of_tensors(where: str) -> None:
    """Pairs in which the upper sample is larger, ties half, counted one by one."""
    rng = np.random.default_rng(0)
    upper, lower = rng.integers(0, 9, 40) / 8, rng.integers(0, 9, 30) / 8
    pairs = (upper[:, None] > lower).sum() + 0.5 * (upper[:, None] == lower).sum()
    given = torch.tensor(upper).to(where), torch.tensor(lower).to(where)
    assert kernels.concordance(*given) == pairs


def test_score_masses_of_tensors(where: str) -> None:
    """Tied scores are one, with their masses added up."""
    score = torch.tensor([0.5, 0.25, 0.5, 1.0]).to(where)
    mass, hits = torch.tensor([1.0, 2, 3, 4]).to(where), torch.tensor([1.0, 0, 2, 4]).to(where)
    distinct, m, h = (x.cpu().tolist() for x in kernels.score_masses(score, mass, hits))
    assert (distinct, m, h) == ([0.25, 0.5, 1.0], [2, 4, 4], [0, 3, 4])


def test_many_chunks_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The size of the chunks changes nothing, and the first bad row is named in the whole."""
    probs, classes, _ = saturated(5000)
    monkeypatch.setattr(tensor_cases, "HOST_CHUNK", 1)
    monkeypatch.setattr(device, "has_cpu_loops", lambda: False)
    metric = metrics.ClasswiseECE(num_classes=4)
    metric.update(torch.tensor(probs), torch.tensor(classes))
    assert metric.compute().item() == pytest.approx(rw.classwise_ece(probs, classes), abs=close)
    own = np.random.default_rng(0).random(5000)  # confidences are cut where the cases are
    ranked = metrics.AUCCC(num_classes=4)
    ranked.update(torch.tensor(probs), torch.tensor(classes), confidence=torch.tensor(own))
    expected = rw.auccc(probs, classes, confidence=own)
    assert ranked.compute().item() == pytest.approx(expected, abs=ranked.bound.item() + 1e-12)
    assert ranked.bound.item() < 1e-3
    probs[3333] = 0.5
    with pytest.raises(InvalidInputError, match="row 3333 sums to 2"):
        metric.update(torch.tensor(probs), torch.tensor(classes))


# MONAI ---------------------------------------------------------------------------------------


def test_without_monai_the_adaptor_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The adaptor names the extra that has MONAI."""
    import sys

    from raterwise.torch.monai import monai_metric

    monkeypatch.setitem(sys.modules, "monai.metrics", None)
    with pytest.raises(rw.MissingExtraError, match="needs MONAI"):
        monai_metric(metrics.ECE(2))


def test_monai_metric() -> None:
    """One-hot channels first, by batch or by image: pixels pooled, or the mean of the images."""
    pytest.importorskip("monai", reason="MONAI is not installed")
    from raterwise.torch.monai import monai_metric

    probs, classes, _ = saturated(96)
    images = torch.tensor(probs).reshape(4, 4, 6, 4).movedim(-1, 1)
    onehot = torch.nn.functional.one_hot(torch.tensor(classes), 4).reshape(4, 4, 6, 4)
    onehot = onehot.movedim(-1, 1)
    pooled = monai_metric(metrics.ECE(num_classes=4))
    pooled(y_pred=images[:2], y=onehot[:2])
    pooled(y_pred=list(images[2:]), y=list(onehot[2:]))
    assert pooled.aggregate().item() == pytest.approx(rw.ece(probs, classes), abs=close)
    pooled.reset()
    each = monai_metric(metrics.ECE(num_classes=4), reduction="mean")
    each(y_pred=images, y=torch.tensor(classes).reshape(4, 1, 4, 6))
    expected = np.mean([rw.ece(probs[i : i + 24], classes[i : i + 24]) for i in range(0, 96, 24)])
    assert each.aggregate().item() == pytest.approx(expected, abs=close)


def test_states_of_other_options_are_not_added() -> None:
    """What differs is said; a state that was not added is as it was."""
    probs, classes = [[0.9, 0.1], [0.4, 0.6]], [0, 0]
    for other, message in (
        (metrics.ECE(num_classes=3), "incoming_state: must be of 2 classes; got 3"),
        (metrics.MCE(num_classes=2), "incoming_state: must be that of ECE; got MCE"),
        (metrics.ECE(num_classes=2, bins=10), "incoming_state: .* the same options"),
        (metrics.ECE(num_classes=2, question="positive"), "incoming_state: .* the same options"),
        ({}, "incoming_state: .* got nothing"),
        (3, "incoming_state: must be a metric or its state; got int"),
    ):
        here = metrics.ECE(num_classes=2)
        here.update(probs, classes)
        with pytest.raises(rw.MergeError, match=message):
            here.merge_state(other)
        assert here.compute().item() == pytest.approx((0.1 + 0.6) / 2)
    there = metrics.ECE(num_classes=2)
    there.update([[0.8, 0.2]], [0])
    here.merge_state(there.metric_state)
    assert here.compute().item() == pytest.approx((0.1 + 0.6 + 0.2) / 3)
