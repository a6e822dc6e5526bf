"""Training losses: against released code, by hand, under autocast, compiled, and their gradients.

The values are in ``tests/fixtures/torch_losses``, or in the folder of ``RATERWISE_GOLDEN``. Two
findings about the originals:

- The released RCR is eq 9 of its paper as printed (normalised over j, divided by N): its value is
  (1 - 1/N)/K whatever sigma and the predictions are, and its gradient is 0 but for rounding.
- The released MMCE_weighted divides the sums over pairs by the number of pairs twice; netcal's
  MMCEPenalty, and ours by default, divides once.
"""

from __future__ import annotations

import inspect
import json
import math
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import raterwise as rw
from golden import FOCAL, KDE, MDCA, NETCAL, ROBUST, golden_set

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from raterwise.errors import InvalidInputError, InvalidTypeError  # noqa: E402
from raterwise.labels import Labels  # noqa: E402
from raterwise.torch import losses  # noqa: E402

torch.set_num_threads(1)

FOLDER = Path(
    os.environ.get(
        "RATERWISE_GOLDEN", Path(__file__).resolve().parent / "fixtures" / "torch_losses"
    )
)
DCA = "GB-TonyLiang/DCA"
TOLERANCE = 1e-10
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def cross_entropy() -> torch.nn.Module:
    """Cross-entropy, as PyTorch has it."""
    return torch.nn.CrossEntropyLoss()


# Which loss of ours each value is; the arguments are the parameters of the original.
LOSSES: dict[tuple[str, str], Callable[[dict[str, Any]], Loss]] = {
    (ROBUST, "CE"): lambda p: losses.HistogramCrossEntropy(),
    (ROBUST, "focal"): lambda p: losses.FocalLoss(p["gamma"]),
    (ROBUST, "FLSD"): lambda p: losses.FLSD(p["gamma"]),
    (ROBUST, "Brier"): lambda p: losses.Brier(),
    (ROBUST, "LabelSmoothing"): lambda p: losses.LabelSmoothing(p["alpha"]),
    (ROBUST, "MDCA"): lambda p: losses.MDCA(),
    (ROBUST, "RCR"): lambda p: losses.RCR(p["sigma"], normalization="paper"),
    (ROBUST, "MMCE_weighted"): lambda p: losses.MMCE(weighted=True, normalization="released"),
    (ROBUST, "CE_plus_DCA"): lambda p: losses.Regularized(cross_entropy(), losses.DCA(), p["beta"]),
    (ROBUST, "FL_plus_MDCA"): lambda p: losses.Regularized(
        losses.FocalLoss(p["gamma"]), losses.MDCA(), p["beta"]
    ),
    (ROBUST, "FL_plus_RCR"): lambda p: losses.Regularized(
        losses.FocalLoss(p["gamma"]), losses.RCR(normalization="paper"), p["beta"]
    ),
    (MDCA, "MDCA"): lambda p: losses.MDCA(),
    (MDCA, "FL_plus_MDCA"): lambda p: losses.Regularized(
        losses.FocalLoss(p["gamma"]), losses.MDCA(), p["beta"]
    ),
    (MDCA, "NLL_plus_MDCA"): lambda p: losses.Regularized(
        cross_entropy(), losses.MDCA(), p["beta"]
    ),
    (MDCA, "CE_plus_DCA"): lambda p: losses.Regularized(cross_entropy(), losses.DCA(), p["beta"]),
    (DCA, "CE_plus_DCA"): lambda p: (
        lambda x, y: p["alpha"] * cross_entropy()(x, y) + p["beta"] * losses.DCA()(x, y)
    ),
    (FOCAL, "focal"): lambda p: losses.FocalLoss(
        p["gamma"], reduction="mean" if p["reduction"] == "mean" else "sum"
    ),
    (FOCAL, "FLSD53"): lambda p: losses.FLSD(p["gamma"]),
    (FOCAL, "FLSD532"): lambda p: losses.FLSD(p["gamma"]),
    (FOCAL, "Brier"): lambda p: losses.Brier(),
    (FOCAL, "MMCE"): lambda p: losses.MMCE(),
    (FOCAL, "MMCE_weighted"): lambda p: losses.MMCE(weighted=True, normalization="released"),
}


@cache
def rows() -> list[dict[str, Any]]:
    """Every line of the index."""
    found: list[dict[str, Any]] = json.loads((FOLDER / "index.json").read_text())
    return found


def find(
    *what: str, repository: str, where: Callable[[dict[str, Any]], bool] = lambda _: True
) -> Any:
    """Run the test once for each value of these names, as its argument ``row``."""
    chosen = [
        row
        for row in rows()
        if row["what"] in what and row["repo"] == repository and where(row["params"])
    ]
    return pytest.mark.parametrize("row", chosen, ids=[row["id"] for row in chosen])


def losses_of(prefix: str) -> Any:
    """Run the test once for each loss, or each gradient, that LOSSES knows."""
    chosen = [
        row
        for row in rows()
        if row["what"].startswith(prefix) and (row["repo"], name_of(row)) in LOSSES
    ]
    return pytest.mark.parametrize("row", chosen, ids=[row["id"] for row in chosen])


def name_of(row: dict[str, Any]) -> str:
    """The loss that a value or gradient is of."""
    return str(row["what"]).split("_", 1)[1]


def inputs(row: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """The logits, wanting a gradient, and the labels."""
    data = golden_set(row["set"])
    size = 128 if row["params"].get("rows") == "first128" else len(data["labels"])
    logits = torch.tensor(data["logits"][:size], dtype=torch.float64, requires_grad=True)
    return logits, torch.tensor(data["labels"][:size].astype(np.int64))


@cache
def arrays() -> Any:
    """The values that are arrays; each is read when it is asked for."""
    return np.load(FOLDER / "outputs.npz", allow_pickle=False)


def stored(row: dict[str, Any]) -> np.ndarray[Any, Any]:
    """The array of a value that is one."""
    return np.asarray(arrays()[row["key"]])


def mixed(cases: int = 24, classes: int = 3, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Random logits and labels in which every class occurs."""
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(cases, classes, generator=generator, dtype=torch.float64)
    labels = torch.randint(classes, (cases,), generator=generator)
    labels[:classes] = torch.arange(classes)
    return logits, labels


ALL: dict[str, torch.nn.Module] = {
    "focal": losses.FocalLoss(2),
    "focal, gamma below 1": losses.FocalLoss(0.5),
    "flsd": losses.FLSD(),
    "brier": losses.Brier(),
    "label smoothing": losses.LabelSmoothing(0.1),
    "histogram": losses.HistogramCrossEntropy(),
    "mdca": losses.MDCA(),
    "dca": losses.DCA(),
    "rcr": losses.RCR(),
    "rcr, paper": losses.RCR(normalization="paper"),
    "mmce": losses.MMCE(),
    "mmce, weighted": losses.MMCE(weighted=True, root=True),
    "kde": losses.KDECalibration(),
    "kde, top label": losses.KDECalibration(question="top_label"),
    "kde, per class": losses.KDECalibration(question="per_class"),
    "regularized": losses.Regularized(losses.FocalLoss(1), losses.RCR(), beta=1),
}
every_loss = pytest.mark.parametrize("loss", ALL.values(), ids=ALL.keys())

# the released code ---------------------------------------------------------------------------


def test_every_loss_of_the_references_is_matched() -> None:
    """No loss in the index is left out by mistake."""
    named = {(row["repo"], name_of(row)) for row in rows() if row["what"].startswith("loss")}
    assert named <= set(LOSSES)


@losses_of("loss_")
def test_losses_of_released_code(row: dict[str, Any]) -> None:
    """The value, to ten decimals."""
    logits, labels = inputs(row)
    loss = LOSSES[row["repo"], name_of(row)](row["params"])
    assert loss(logits, labels).item() == pytest.approx(row["value"], rel=0, abs=TOLERANCE)


@losses_of("lossgrad_")
def test_gradients_of_released_code(row: dict[str, Any]) -> None:
    """The gradient with respect to the logits, to ten decimals."""
    logits, labels = inputs(row)
    LOSSES[row["repo"], name_of(row)](row["params"])(logits, labels).backward()
    assert logits.grad is not None
    expected = stored(row)
    np.testing.assert_allclose(logits.grad[: len(expected)], expected, rtol=0, atol=TOLERANCE)


@find("MMCEPenalty", repository=NETCAL)
def test_weighted_mmce_of_netcal(row: dict[str, Any]) -> None:
    """netcal divides once and takes the root."""
    value = losses.MMCE(weighted=True, root=True)(*inputs(row))
    assert value.item() == pytest.approx(row["value"], rel=0, abs=TOLERANCE)


@find("MMCE", repository=NETCAL)
def test_mmce_of_netcal(row: dict[str, Any]) -> None:
    """netcal's metric is the root of the plain sum."""
    value = losses.MMCE(root=True)(*inputs(row))
    assert value.item() == pytest.approx(row["value"], rel=0, abs=TOLERANCE)


@find("DCAPenalty", repository=NETCAL)
def test_dca_of_netcal(row: dict[str, Any]) -> None:
    """netcal has the accuracy in float32."""
    assert losses.DCA()(*inputs(row)).item() == pytest.approx(row["value"], rel=0, abs=1e-6)


@find("ECE_KDE_canonical_grad", repository=KDE)
def test_gradient_of_the_kernel_error(row: dict[str, Any]) -> None:
    """ece-kde's gradient with respect to each probability."""
    data = golden_set(row["set"])
    probs = torch.tensor(data.probs, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor(data.classes.astype(np.int64))
    options = {"bandwidth": row["params"]["bandwidth"], "floor": 1e-10}
    losses.kde_calibration_error(probs, labels, **options).backward()
    assert probs.grad is not None
    expected = stored(row)
    np.testing.assert_allclose(probs.grad[: len(expected)], expected, rtol=0, atol=TOLERANCE)


@find(
    "ECE_KDE_canonical",
    "ECE_KDE_marginal",
    "ECE_KDE_top_label",
    repository=KDE,
    where=lambda p: p.get("dtype") != "float32" and p["bandwidth"] != "LOO",
)
def test_kernel_error_of_logits(row: dict[str, Any]) -> None:
    """The same error from logits; ece-kde sums its "marginal" over the classes, we take the mean.

    Its canonical ratio is 0 where the kernels sum to less than 1e-10, which a narrow bandwidth
    does to lonely cases: `floor` does the same.
    """
    question = {"canonical": "canonical", "marginal": "per_class", "label": "top_label"}[
        row["what"].split("_")[-1]
    ]
    logits, labels = inputs(row)
    divisor = logits.shape[1] if question == "per_class" else 1
    bandwidth, p = row["params"]["bandwidth"], row["params"]["p"]
    floor = 1e-10 if question == "canonical" else 0.0
    value = losses.kde_term(logits, labels, bandwidth, question=question, p=p, floor=floor)
    assert value.item() == pytest.approx(row["value"] / divisor, rel=0, abs=1e-9)


# RCR -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0.01, 0.1, 1.0])
def test_rcr_as_printed_is_a_constant(sigma: float) -> None:
    """RECE eq 9 normalises over j and eq 8 averages over j: no sigma, no predictions, no gradient.

    Every class has a label here, so the term is 1/K Σ_k (n_k/N - mean C_k/N) = (1 - 1/N)/K.
    """
    logits, labels = mixed()
    logits.requires_grad_()
    value = losses.RCR(sigma, normalization="paper")(logits, labels)
    value.backward()
    assert value.item() == pytest.approx((1 - 1 / 24) / 3, abs=1e-14)
    assert logits.grad is not None
    assert logits.grad.abs().max() < 1e-15


def test_rcr_depends_on_sigma_and_has_a_gradient() -> None:
    """The default form smooths: between the limits it is not MDCA, and it can be descended."""
    logits, labels = mixed()
    logits.requires_grad_()
    narrow, wide = (losses.RCR(sigma)(logits, labels) for sigma in (0.1, 0.3))
    assert abs(narrow.item() - wide.item()) > 1e-4
    narrow.backward()
    assert logits.grad is not None
    assert logits.grad.abs().max() > 1e-3
    stepped = logits.detach() - 0.1 * logits.grad
    assert losses.RCR()(stepped, labels).item() < narrow.item()


@pytest.mark.parametrize("sigma", [1e-6, 1e6])
def test_rcr_at_its_limits_is_mdca(sigma: float) -> None:
    """A Gaussian of no width leaves C_j, an infinite one the mean of C: both have that mean."""
    logits, labels = mixed()
    expected = losses.MDCA()(logits, labels).item()
    assert losses.RCR(sigma)(logits, labels).item() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("normalization", ["smooth", "paper"])
def test_rcr_of_some_classes_at_a_time(normalization: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the pairs of all classes are too many, the value and the gradient are the same."""
    random = np.random.default_rng(3)
    labels = torch.from_numpy(random.integers(0, 5, 30))
    labels[::7] = -100
    found = []
    for pairs in (1 << 24, 2 * 30**2, 1):
        monkeypatch.setattr("raterwise.torch.losses.pairs.PAIRS_AT_ONCE", pairs)
        logits = torch.from_numpy(np.random.default_rng(4).normal(size=(30, 5))).requires_grad_()
        value = losses.RCR(normalization=normalization)(logits, labels)
        value.backward()
        assert logits.grad is not None
        found.append((value.item(), logits.grad.numpy()))
    for value, gradient in found[1:]:
        assert value == pytest.approx(found[0][0], abs=1e-14)
        np.testing.assert_allclose(gradient, found[0][1], atol=1e-14)


def test_rcr_by_hand() -> None:
    """Two cases: g = exp(-d²/2σ²) between them, z_1 = (C_1 + g C_2)/(1 + g)."""
    p = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.5, 0.5]], dtype=torch.float64)

    def g(a: float, b: float) -> float:
        return math.exp(-((a - b) ** 2) / (2 * 0.2**2))

    c = [0.9, 0.6, 0.5]
    z = [sum(b * g(a, b) for b in c) / sum(g(a, b) for b in c) for a in c]
    # Both classes have the same gap: their probabilities mirror each other.
    expected = abs(sum(z) / 3 - 1 / 3)
    value = losses.RCR(sigma=0.2)(p.log(), torch.tensor([0, 1, 1])).item()
    assert value == pytest.approx(expected, abs=1e-12)


# what all have in common ---------------------------------------------------------------------


@every_loss
def test_gradients_are_right(loss: torch.nn.Module) -> None:
    """The gradient is the numerical one, in float64."""
    logits, labels = mixed(8, 3, seed=3)
    logits.requires_grad_()
    assert torch.autograd.gradcheck(lambda x: loss(x, labels), (logits,), atol=1e-6)


@every_loss
def test_label_counts_of_one_rater_are_classes(loss: torch.nn.Module) -> None:
    """A histogram with one label is that label."""
    logits, labels = mixed()
    counts = torch.nn.functional.one_hot(labels, 3)
    assert loss(logits, counts).item() == pytest.approx(loss(logits, labels).item(), abs=1e-12)


@every_loss
def test_dense_outputs_are_cases(loss: torch.nn.Module) -> None:
    """(N, K, H, W) and (N, K, H, W, D) are the same cases in another layout."""
    logits, labels = mixed(24)
    expected = loss(logits, labels).item()
    for shape in ((2, 3, 4), (2, 2, 3, 2)):
        dense = logits.reshape(*shape, 3).movedim(-1, 1)
        assert loss(dense, labels.reshape(shape)).item() == pytest.approx(expected, abs=1e-12)


@every_loss
def test_ignored_cases_are_not_there(loss: torch.nn.Module) -> None:
    """A case of class `ignore_index`, or without labels, changes neither value nor gradient."""
    logits, labels = mixed()
    more = torch.cat((logits, 5 * torch.randn(6, 3, dtype=torch.float64)))
    marked = torch.cat((labels, torch.full((6,), -100)))
    expected = loss(logits, labels).item()
    more.requires_grad_()
    value = loss(more, marked)
    assert value.item() == pytest.approx(expected, abs=1e-12)
    (gradient,) = torch.autograd.grad(value, more)
    assert gradient[len(logits) :].abs().max() == 0
    counts = torch.nn.functional.one_hot(marked.clamp_min(0), 3) * (marked >= 0)[:, None]
    assert loss(more, counts).item() == pytest.approx(expected, abs=1e-12)


@every_loss
def test_a_batch_of_ignored_cases_is_nothing(loss: torch.nn.Module) -> None:
    """With every case ignored, value and gradient are 0, not NaN: training goes on."""
    logits = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    value = loss(logits, torch.full((4,), -100))
    (gradient,) = torch.autograd.grad(value, logits)
    assert value.item() == 0
    assert gradient.abs().max() == 0


@every_loss
def test_bfloat16_autocast(loss: torch.nn.Module) -> None:
    """Under autocast the loss is float32 and as good as its 16-bit logits allow."""
    logits, labels = mixed(64, seed=1)
    half = logits.bfloat16().requires_grad_()
    expected = loss(half.detach().double(), labels).item()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = loss(half, labels)
    value.backward()
    assert value.dtype == torch.float32
    assert value.item() == pytest.approx(expected, abs=1e-5)
    assert half.grad is not None and torch.isfinite(half.grad).all()


@every_loss
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=["float16", "float32"])
def test_saturated_logits_stay_finite(loss: torch.nn.Module, dtype: torch.dtype) -> None:
    """Logits of ±60000 and exact ties give finite values and gradients."""
    logits = torch.tensor(
        [[6e4, -6e4, 0], [-6e4, 6e4, 0], [0, 0, 0], [100, 0, 0], [1e-4, 0, 6e4]], dtype=dtype
    ).requires_grad_()
    value = loss(logits, torch.tensor([0, 0, 1, 0, 2]))
    value.backward()
    assert torch.isfinite(value)
    assert logits.grad is not None and torch.isfinite(logits.grad).all()


@pytest.mark.parametrize("name", ["focal", "flsd", "rcr", "mmce", "kde", "regularized"])
def test_torch_compile(name: str) -> None:
    """One graph without breaks, with the same value and gradient."""
    logits, labels = mixed()
    logits.requires_grad_()
    compiled = torch.compile(ALL[name], backend="aot_eager", fullgraph=True)
    value = compiled(logits, labels)
    expected = ALL[name](logits, labels)
    assert value.item() == pytest.approx(expected.item(), abs=1e-12)
    (ours,) = torch.autograd.grad(value, logits)
    (plain,) = torch.autograd.grad(expected, logits)
    torch.testing.assert_close(ours, plain)
    torch.compiler.reset()


# by hand -------------------------------------------------------------------------------------


def test_focal_loss_without_focus_is_cross_entropy() -> None:
    """γ = 0, with class weights, an ignored class and each reduction, as PyTorch has it."""
    logits, labels = mixed()
    labels[5] = 1
    weight = torch.tensor([0.2, 1.0, 3.0], dtype=torch.float64)
    for reduction in ("mean", "sum", "none"):
        options: dict[str, Any] = {"weight": weight, "ignore_index": 2, "reduction": reduction}
        theirs = torch.nn.CrossEntropyLoss(**options)(logits, labels)
        torch.testing.assert_close(losses.FocalLoss(0.0, **options)(logits, labels), theirs)
        torch.testing.assert_close(losses.HistogramCrossEntropy(**options)(logits, labels), theirs)


def test_dense_cross_entropy_is_that_of_pytorch() -> None:
    """One value per pixel, in the shape of the image."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 3, 4, 5, generator=generator)
    labels = torch.randint(3, (2, 4, 5), generator=generator)
    theirs = torch.nn.CrossEntropyLoss(reduction="none")(logits, labels)
    ours = losses.HistogramCrossEntropy(reduction="none")(logits, labels)
    torch.testing.assert_close(ours, theirs)


def test_label_smoothing_of_pytorch() -> None:
    """PyTorch shares ε among all K classes: our α is ε (K - 1)/K."""
    logits, labels = mixed()
    theirs = torch.nn.CrossEntropyLoss(label_smoothing=0.3)(logits, labels)
    torch.testing.assert_close(losses.LabelSmoothing(0.2)(logits, labels), theirs)


def test_histogram_cross_entropy_is_the_likelihood_of_every_annotation() -> None:
    """LH eq 82: a case with three labels counts three times, as its rows repeated."""
    logits, _ = mixed(4)
    counts = torch.tensor([[3, 0, 0], [1, 1, 0], [0, 2, 3], [0, 0, 1]])
    rows = torch.repeat_interleave(torch.arange(4), counts.sum(dim=1))
    labels = torch.cat([torch.repeat_interleave(torch.arange(3), row) for row in counts])
    expected = torch.nn.CrossEntropyLoss()(logits[rows], labels)
    torch.testing.assert_close(losses.HistogramCrossEntropy()(logits, counts), expected)


def test_other_losses_average_over_the_raters_of_a_case() -> None:
    """Each case counts once, whatever its number of raters: the mean loss of its labels."""
    logits = mixed(3)[0][:2]
    counts = torch.tensor([[3, 1, 0], [0, 1, 1]])
    kinds = (losses.FocalLoss, losses.FLSD, losses.Brier, losses.LabelSmoothing)
    for loss in (kind(reduction="none") for kind in kinds):
        each = [loss(logits, torch.full((2,), k)) for k in range(3)]
        expected = (3 * each[0][0] + each[1][0]) / 4, (each[1][1] + each[2][1]) / 2
        torch.testing.assert_close(loss(logits, counts), torch.stack(expected))


def test_brier_loss_is_the_expected_squared_loss() -> None:
    """LH eq 8, worked by hand: Σ_k (μ - p)² + μ(1 - μ)."""
    p = torch.tensor([[0.5, 0.3, 0.2]], dtype=torch.float64)
    value = losses.Brier()(p.log(), torch.tensor([[2, 1, 1]]))
    gaps = 0.0**2 + 0.05**2 + 0.05**2
    spread = 0.5 * 0.5 + 2 * 0.25 * 0.75
    assert value.item() == pytest.approx(gaps + spread, abs=1e-12)


def test_class_weights_of_batch_terms() -> None:
    """MDCA weighs the classes in its mean; DCA the cases, as if they were repeated."""
    logits, labels = mixed(5)
    weight = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    p, y = logits.softmax(1), torch.nn.functional.one_hot(labels, 3).double()
    gap = (p - y).mean(0).abs()
    expected = (gap * weight).sum() / 6
    torch.testing.assert_close(losses.MDCA(weight=weight)(logits, labels), expected)
    repeat = torch.repeat_interleave(torch.arange(5), weight[labels].long())
    for term in (losses.DCA, losses.MMCE):
        repeated = term()(logits[repeat], labels[repeat])
        torch.testing.assert_close(term(weight=weight)(logits, labels), repeated)


def test_dense_pairs_are_spread_evenly() -> None:
    """Of many pixels `max_cases` are used: kept ones only, never in step with the image's width."""
    from raterwise.torch.losses._cases import read_cases, subset

    width = 64
    marks = torch.arange(width * width).reshape(1, 1, width, width).double()
    logits = torch.cat((marks, -marks), dim=1)
    labels = torch.zeros(1, width, width, dtype=torch.long)
    labels[..., : width // 2] = -100
    few = subset(read_cases(logits, labels), 256)
    assert few.keep.min() == 1
    cells = (-few.log_probs[:, 1] / 2).round().long()
    columns, lines = cells % width, cells // width
    assert columns.min() >= width // 2
    assert len(columns.unique()) == width // 2
    assert len(lines.unique()) == width
    everything = subset(read_cases(logits, labels), width * width)
    assert everything.keep.sum() == width * width / 2


def test_mmce_at_zero_has_gradient_zero() -> None:
    """The root of 0 has no slope: where nothing is wrong, nothing is pushed."""
    logits = torch.zeros(2, 2, dtype=torch.float64, requires_grad=True)
    value = losses.MMCE(root=True)(logits, torch.tensor([0, 1]))
    (gradient,) = torch.autograd.grad(value, logits)
    assert value.item() == 0
    assert gradient.abs().max() == 0


def test_weighted_mmce_with_one_kind_of_case() -> None:
    """Where every case is right, the wrong ones contribute nothing; the released code says 0."""
    p = torch.tensor([[0.9, 0.1], [0.9, 0.1]], dtype=torch.float64)
    labels = torch.tensor([0, 0])
    value = losses.MMCE(weighted=True, root=True)(p.log(), labels)
    assert value.item() == pytest.approx(0.1, abs=1e-12)
    released = losses.MMCE(weighted=True, normalization="released")(p.log(), labels)
    assert released.item() == 0


def test_training_with_a_term_lowers_the_miscalibration() -> None:
    """A gradient of focal + RCR, followed for a while, brings MDCA down on the same data."""
    logits, labels = mixed(60, 3, seed=5)
    loss = losses.Regularized(losses.FocalLoss(1), losses.RCR(), beta=1)
    scale = torch.tensor(4.0, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([scale], lr=0.1)
    before = loss(4 * logits, labels).item()
    for _ in range(40):
        optimiser.zero_grad()
        loss(scale * logits, labels).backward()
        optimiser.step()
    assert loss(scale * logits, labels).item() < before - 0.1


COMMON = ["weight", "ignore_index", "max_cases", "reduction"]
"""The options that several losses share, in the order in which all have them."""
MODULES = [losses.FocalLoss, losses.FLSD, losses.Brier, losses.LabelSmoothing,
           losses.HistogramCrossEntropy, losses.MDCA, losses.DCA, losses.RCR, losses.MMCE,
           losses.KDECalibration]  # fmt: skip
FUNCTIONS = [losses.focal_loss, losses.flsd_loss, losses.brier_loss, losses.label_smoothing_loss,
             losses.histogram_cross_entropy, losses.mdca_term, losses.dca_term, losses.rcr_term,
             losses.mmce_term, losses.kde_term]  # fmt: skip


@pytest.mark.parametrize(("module", "function"), list(zip(MODULES, FUNCTIONS, strict=True)))
def test_all_losses_take_their_arguments_in_one_order(module: Any, function: Any) -> None:
    """One option of their own may stand alone, the rest have names, the shared ones come last."""
    own = list(inspect.signature(module).parameters.values())
    given = list(inspect.signature(function).parameters.values())
    assert [p.name for p in given[:2]] == ["logits", "targets"]
    assert [(p.name, p.kind, p.default) for p in given[2:]] == [
        (p.name, p.kind, p.default) for p in own
    ]
    assert sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in own) <= 1
    names = [p.name for p in own]
    shared = [name for name in COMMON if name in names]
    assert names[len(names) - len(shared) :] == shared
    assert list(inspect.signature(module.forward).parameters) == ["self", "logits", "targets"]


# errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("logits", "targets", "message"),
    [
        (torch.zeros(4), torch.zeros(4).long(), r"logits: must be \(N, K\).*got shape \(4,\)"),
        (torch.zeros(4, 1), torch.zeros(4).long(), "at least 2 classes"),
        (
            torch.zeros(4, 2),
            torch.zeros(3).long(),
            "targets: must match logits; got 3 labels for 4",
        ),
        (torch.zeros(4, 2), torch.zeros(4, 3), "must have the classes of logits; got 3 classes"),
        (
            torch.zeros(4, 2),
            torch.full((4,), 2),
            "targets: must be classes 0 … 1 or ignore_index; entry 0 is 2",
        ),
        (torch.zeros(4, 2), torch.full((4,), -1), "entry 0 is -1"),
    ],
)
def test_wrong_shapes_and_classes(
    logits: torch.Tensor, targets: torch.Tensor, message: str
) -> None:
    """The message names the argument, the rule and the value."""
    with pytest.raises(InvalidInputError, match=message):
        losses.FocalLoss(1)(logits, targets)


def test_wrong_types() -> None:
    """Classes are integers, logits are not."""
    with pytest.raises(InvalidTypeError, match=r"targets: classes must be integers; got torch"):
        losses.MDCA()(torch.zeros(4, 2), torch.zeros(4))
    with pytest.raises(InvalidTypeError, match=r"logits: must be floating point; got torch.int64"):
        losses.MDCA()(torch.zeros(4, 2).long(), torch.zeros(4).long())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: losses.RCR(normalization="rows"), "normalization: must be one of smooth, paper"),
        (lambda: losses.MMCE(normalization="rows"), "normalization: must be one of mean, released"),
        (lambda: losses.KDECalibration(question="all"), "question: must be one of canonical"),
        (lambda: losses.KDECalibration(floor=-1.0), "floor: must be finite and not negative"),
        (
            lambda: losses.KDECalibration(question="top_label", floor=1e-10),
            "floor: is for question=",
        ),
        (
            lambda: losses.KDECalibration(question="positive")(*mixed()),
            'question: "positive" is for 2',
        ),
        (lambda: losses.KDECalibration(p=3), "p: must be 1 or 2; got 3"),
        (
            lambda: losses.KDECalibration(bandwidth=0),
            "bandwidth: must be positive and finite; got 0",
        ),
        (lambda: losses.RCR(sigma=0.0)(*mixed()), "sigma: must be positive and finite; got 0.0"),
        (
            lambda: losses.MMCE(bandwidth=-1.0)(*mixed()),
            "bandwidth: must be positive and finite; got -1.0",
        ),
        (lambda: losses.LabelSmoothing(1.0)(*mixed()), "smoothing: must be at least 0 and below 1"),
        (lambda: losses.FocalLoss(1, reduction="all")(*mixed()), "reduction: must be one of mean"),
        (lambda: losses.Brier(weight=torch.ones(2))(*mixed()), r"weight: must have one .*\(3,\)"),
    ],
)
def test_wrong_options(make: Callable[[], Any], message: str) -> None:
    """Options are checked, at the latest when they are used."""
    with pytest.raises(InvalidInputError, match=message):
        make()


def test_labels_of_raterwise_serve_as_targets() -> None:
    """The counts of a `Labels` go in as they are."""
    labels = Labels.from_ratings([[0, 1, 1], [1, 1, -1]], num_classes=2)
    loss = losses.HistogramCrossEntropy()(torch.zeros(2, 2), torch.as_tensor(labels.counts))
    assert loss.item() == pytest.approx(math.log(2), abs=1e-6)


# what goes wrong in training --------------------------------------------------------------------


@pytest.mark.parametrize("question", ["canonical", "per_class", "top_label"])
@pytest.mark.parametrize("bandwidth", [0.5, 0.01, 1e-4])
def test_kernel_loss_is_kde_ece_of_histograms(question: Any, bandwidth: float) -> None:
    """Cases with many labels weigh more, isolated and saturated ones are as in the metric."""
    rng = np.random.default_rng(0)
    probs = np.vstack((rng.dirichlet(np.ones(3), 30), np.eye(3) * 0.98 + 0.02 / 3))
    counts = rng.multinomial(1, [0.3, 0.3, 0.4], 33) + rng.integers(0, 4, (33, 1)) * [1, 0, 0]
    expected = rw.kde_ece(probs, Labels.from_counts(counts), question, bandwidth=bandwidth)
    logits, targets = torch.tensor(probs).log(), torch.tensor(counts)
    term = losses.kde_term(logits, targets, bandwidth, question=question)
    assert term.item() == pytest.approx(expected, abs=1e-9)
    given = losses.kde_calibration_error(torch.tensor(probs), targets, bandwidth, question=question)
    assert given.item() == pytest.approx(expected, abs=1e-9)


def test_kernel_loss_has_no_hidden_floor() -> None:
    """However far apart two cases are, each is foreseen by the other; a floor says nobody is near.

    Of (0.6, 0.4) labelled 0 and (0.1, 0.9) labelled 1: |0 - 0.6| + |1 - 0.4| and 0.9 + 0.9; with
    the floor both are as if nobody were there: 0.6 + 0.4 and 0.1 + 0.9.
    """
    probs, labels = torch.tensor([[0.6, 0.4], [0.1, 0.9]]).double(), torch.tensor([0, 1])
    given = losses.kde_calibration_error(probs, labels, 1e-4)
    assert given.item() == pytest.approx((1.2 + 1.8) / 2)
    floored = losses.kde_calibration_error(probs, labels, 1e-4, floor=1e-10)
    assert floored.item() == pytest.approx((1.0 + 1.0) / 2)


def test_kernel_loss_of_the_positive_class() -> None:
    """Of two cases each is foreseen by the other alone: |0 - 0.9| and |1 - 0.4| of class 1."""
    probs, labels = torch.tensor([[0.6, 0.4], [0.1, 0.9]]), torch.tensor([0, 1])
    given = losses.kde_term(probs.log(), labels, 0.05, question="positive")
    assert given.item() == pytest.approx((0.6 + 0.9) / 2, abs=1e-6)


def test_kernel_loss_of_impossible_classes() -> None:
    """Probabilities far below the smallest that a logarithm sees are as in the metric."""
    logits = torch.tensor([[0.0, -400.0, -1.0], [-300.0, 0.0, -2.0], [-1.0, -200.0, 0.0]]).double()
    logits.requires_grad_()
    value = losses.kde_term(logits, torch.tensor([0, 1, 1]), 0.1)
    probs = logits.detach().softmax(1)
    expected = rw.kde_ece(probs, [0, 1, 1], question="canonical", bandwidth=0.1)
    assert value.item() == pytest.approx(expected, abs=1e-9)
    value.backward()
    assert logits.grad is not None and bool(logits.grad.isfinite().all())


def test_kernel_error_of_dense_and_short_probabilities() -> None:
    """(N, K, H, W) are pixels, and 16-bit floats are read in full precision."""
    probs = torch.tensor([[0.75, 0.25], [0.25, 0.75], [0.5, 0.5], [0.25, 0.75]])
    targets = torch.tensor([0, 1, 1, 0])
    flat = losses.kde_calibration_error(probs, targets)
    dense = losses.kde_calibration_error(
        probs.T.reshape(1, 2, 2, 2).bfloat16(), targets.reshape(1, 2, 2)
    )
    assert dense.item() == pytest.approx(flat.item(), abs=1e-6)


@pytest.mark.parametrize(
    "loss", [losses.FocalLoss(2.0), losses.FLSD(), losses.KDECalibration()], ids=str
)
def test_a_class_that_is_switched_off(loss: Loss) -> None:
    """Logits of -∞ for a class that no rater chose have a finite loss and finite gradients."""
    logits = torch.tensor([[0.0, 1.0, -math.inf], [1.0, 0.0, -math.inf]], requires_grad=True)
    loss(logits, torch.tensor([[1, 2, 0], [3, 0, 0]])).backward()
    assert logits.grad is not None and bool(logits.grad.isfinite().all())


@pytest.mark.parametrize(
    "loss",
    [
        losses.FocalLoss(1.0, ignore_index=0),
        losses.HistogramCrossEntropy(ignore_index=0),
        losses.MDCA(ignore_index=0),
        losses.RCR(ignore_index=0),
        losses.MMCE(ignore_index=0),
        losses.KDECalibration(ignore_index=0),
    ],
    ids=str,
)
def test_the_ignored_class_of_label_counts(loss: Loss) -> None:
    """One-hot counts of an ignored class do not count, as the class itself does not."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(12, 3, generator=generator, dtype=torch.float64)
    classes = torch.randint(3, (12,), generator=generator)
    onehot = torch.nn.functional.one_hot(classes, 3)
    assert loss(logits, onehot).item() == pytest.approx(loss(logits, classes).item(), abs=1e-12)
    assert loss(logits, classes).item() == pytest.approx(
        loss(logits[classes > 0], classes[classes > 0]).item(), abs=1e-12
    )


def test_nan_is_not_hidden() -> None:
    """A network that has diverged shows in the root of MMCE too."""
    broken = torch.full((4, 3), math.nan)
    assert losses.MMCE(root=True)(broken, torch.tensor([0, 1, 2, 0])).isnan()
    released = losses.MMCE(weighted=True, normalization="released")
    assert released(broken, torch.tensor([0, 1, 2, 0])).isnan()


def test_class_weights_that_are_all_zero() -> None:
    """Nothing counts, so the term is 0 and not NaN."""
    assert losses.MDCA(weight=torch.zeros(3))(torch.randn(4, 3), torch.tensor([0, 1, 2, 0])) == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: losses.FocalLoss(-1.0), "gamma: must be finite and not negative; got -1.0"),
        (lambda: losses.FLSD(schedule=((0.2, -5.0),)), "gamma: must be .* not negative; got -5.0"),
        (lambda: losses.Brier(reduction="average"), "reduction: .* got 'average'"),
        (lambda: losses.LabelSmoothing(1.5), "smoothing: must be at least 0 and below 1; got 1.5"),
        (lambda: losses.RCR(sigma=-0.1), "sigma: must be positive and finite; got -0.1"),
        (lambda: losses.MMCE(bandwidth=0.0), "bandwidth: must be positive and finite; got 0.0"),
        (
            lambda: losses.MMCE(max_cases=0)(torch.zeros(2, 2), torch.tensor([0, 1])),
            "max_cases: must be at least 1; got 0",
        ),
        (
            lambda: losses.DCA(weight=torch.tensor([1.0, -2.0]))(
                torch.zeros(2, 2), torch.tensor([0, 1])
            ),
            "weight: must not be negative or NaN; got -2",
        ),
        (
            lambda: losses.Brier()(torch.zeros(1, 2), torch.tensor([[3, -1]])),
            "targets: label counts must not be negative; case 0, class 1 has -1",
        ),
        (
            lambda: losses.MDCA()(torch.zeros(1, 2), torch.tensor([[1.0, math.nan]])),
            "targets: must not contain NaN; 1 values are NaN, the first in row 0",
        ),
    ],
)
def test_wrong_values_are_refused(make: Callable[[], Any], message: str) -> None:
    """Options where they are given, counts and weights where they are used."""
    with pytest.raises(InvalidInputError, match=message):
        make()


def test_arrays_are_no_targets() -> None:
    """A loss has gradients to give, so it takes tensors."""
    with pytest.raises(InvalidTypeError, match="targets: must be a tensor; got ndarray"):
        losses.MDCA()(torch.zeros(2, 2), np.zeros(2, np.int64))  # type: ignore[arg-type]
