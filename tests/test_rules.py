"""Arrays, tensors, metrics of the training loop and losses refuse the same input alike."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import raterwise as rw
from raterwise.errors import InvalidInputError, RaterwiseError, argument_of, missing_extra

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("torchmetrics", reason="torchmetrics is not installed")

from raterwise.functions import measure as measuring  # noqa: E402
from raterwise.tensors import device  # noqa: E402
from raterwise.torch import losses, metrics  # noqa: E402

NAN, INF = float("nan"), float("inf")
GOOD = [[0.9, 0.1], [0.4, 0.6], [0.5, 0.5]]
ONE_EACH = [0, 1, 0]
TWO_EACH = [[2, 0], [1, 1], [0, 2]]


class Bad(NamedTuple):
    """Input that must be refused, and how: by which argument, with which words."""

    message: str
    probs: Any = GOOD
    labels: Any = ONE_EACH
    weights: Any = None


BAD = {
    "NaN": Bad(
        "probs: must not contain NaN; 3 values are NaN, the first in row 1",
        probs=[[0.9, 0.1], [NAN, NAN], [0.5, NAN]],
    ),
    "NaN of one column": Bad(
        "probs: must not contain NaN; 2 values are NaN, the first in row 0", probs=[NAN, 0.5, NAN]
    ),
    "above 1": Bad(
        "probs: must lie in [0, 1]; row 2 holds 1.5 (logits need a softmax first)",
        probs=[[0.9, 0.1], [0.4, 0.6], [1.5, -0.5]],
    ),
    "above 1, one column": Bad(
        "probs: must lie in [0, 1]; row 1 holds 1.25 (logits need a softmax first)",
        probs=[0.5, 1.25, 0.5],
    ),
    "infinite": Bad(
        "probs: must lie in [0, 1]; row 0 holds inf", probs=[[INF, 0.0], [0.4, 0.6], [0.5, 0.5]]
    ),
    "rows that do not sum to 1": Bad(
        "probs: rows must sum to 1 within 1e-4; row 1 sums to 0.75",
        probs=[[0.9, 0.1], [0.25, 0.5], [0.5, 0.5]],
    ),
    "one class": Bad(
        "probs: must have at least 2 classes, or be (N,) for the probability of class 1; "
        "got shape (3, 1)",
        probs=[[1.0], [1.0], [1.0]],
    ),
    "no number at all": Bad(
        "probs: must be 1-dimensional or 2-dimensional; got shape ()", probs=0.5, labels=[0]
    ),
    "a class too many": Bad("labels: must be classes 0 … 1; entry 2 is 2", labels=[0, 1, 2]),
    "a negative class": Bad("labels: must be classes 0 … 1; entry 1 is -3", labels=[0, -3, 2]),
    "classes with fractions": Bad(
        "labels: must be whole numbers; got 0.25", labels=[0.0, 0.25, 0.5]
    ),
    "classes that are NaN": Bad("labels: must be whole numbers; 2 are NaN", labels=[0.5, NAN, NAN]),
    "an infinite class": Bad(
        "labels: must be whole numbers; some are infinite", labels=[0.0, INF, 1.0]
    ),
    "too few labels": Bad("labels: must match probs; got 2 labels for 3 cases", labels=[0, 1]),
    "a negative count": Bad(
        "labels: label counts must not be negative; case 1, class 0 has -1",
        labels=[[2, 0], [-1, 3], [1, 1]],
    ),
    "counts with fractions": Bad(
        "labels: must be whole numbers; got 0.5", labels=[[2.0, 0.0], [0.5, 0.5], [1.0, 1.0]]
    ),
    "counts of other classes": Bad(
        "labels: must have the classes of probs; got 3 classes in labels and 2 in probs",
        labels=[[2, 0, 0], [1, 1, 0], [0, 0, 2]],
    ),
    "counts of too few cases": Bad(
        "labels: must match probs; got 2 labels for 3 cases", labels=[[2, 0], [1, 1]]
    ),
    "a case without ratings": Bad(
        'labels: every case needs a rating; 2 of 3 have none (cases 0, 2); on_unrated="drop" '
        "leaves them out; if the columns are raters and not classes, Labels.from_ratings takes "
        "them",
        labels=[[0, 0], [1, 1], [0, 0]],
    ),
    "a negative weight": Bad(
        "weights: must be finite and not negative; case 1 has -2", weights=[1.0, -2.0, 1.0]
    ),
    "a weight that is NaN": Bad(
        "weights: must be finite and not negative; case 0 has nan", weights=[NAN, 1.0, 1.0]
    ),
    "too many weights": Bad(
        "weights: must have one value per case; got 4 for 3 cases", weights=[1.0, 1.0, 1.0, 1.0]
    ),
    "weights of a matrix": Bad(
        "weights: must be 1-dimensional; got shape (3, 1)", weights=[[1.0], [1.0], [1.0]]
    ),
    "a bad row behind one of weight 0": Bad(
        "probs: must lie in [0, 1]; row 2 holds 2 (logits need a softmax first)",
        probs=[[NAN, NAN], [0.4, 0.6], [2.0, -1.0]],
        weights=[0.0, 1.0, 1.0],
    ),
}
"""Whatever the data are: arrays, tensors, batches of a training loop."""

ONLY_FUNCTIONS = {
    "no cases": Bad("probs: must hold at least one case; got shape (0, 2)", np.empty((0, 2)), []),
    "no weight": Bad("weights: at least one must be positive; all are 0", weights=[0.0, 0.0, 0.0]),
}
"""Batches of the training loop may be empty or weigh nothing: others may not."""


def labels_of(labels: Any) -> Any:
    """Return classes as they are and label histograms as Labels."""
    array = np.asarray(labels)
    return rw.Labels.from_counts(array) if array.ndim == 2 else array


def of_arrays(bad: Bad) -> None:
    """NumPy arrays."""
    rw.ece(np.asarray(bad.probs), labels_of(bad.labels), weights=bad.weights)


def of_tensors(bad: Bad) -> None:
    """CPU tensors, given to the function."""
    labels = labels_of(bad.labels)
    labels = labels if isinstance(labels, rw.Labels) else torch.tensor(bad.labels)
    weights = None if bad.weights is None else torch.tensor(bad.weights)
    rw.ece(torch.as_tensor(bad.probs), labels, weights=weights)


def on_the_device(bad: Bad) -> None:
    """Tensors, by the pass that reads them where they are."""
    weights = None if bad.weights is None else torch.tensor(bad.weights)
    plan = device.BinPlan(rw.questions.Question("top_label"), 15)
    device.summarise(torch.as_tensor(bad.probs), torch.tensor(bad.labels), [plan], weights=weights)


def in_the_loop(bad: Bad) -> None:
    """Tensors, given to a metric of the training loop."""
    weights = None if bad.weights is None else torch.tensor(bad.weights)
    metric = metrics.ECE(num_classes=2)
    metric.update(torch.as_tensor(bad.probs), torch.tensor(bad.labels), weights)


FRONTS = [of_arrays, of_tensors, on_the_device, in_the_loop]


def refused(ask: Callable[[Bad], None], bad: Bad) -> RaterwiseError:
    """Return the error that the input gives; `Labels.from_counts` calls labels counts."""
    with pytest.raises(RaterwiseError) as found:
        ask(bad)
    error = found.value
    return error.renamed("labels") if error.argument == "counts" else error


@pytest.fixture(params=["compiled loops", "tensors"])
def _loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors of the CPU by numba's loops, or by PyTorch as on a GPU."""
    if request.param == "tensors":
        monkeypatch.setattr(device, "has_cpu_loops", lambda: False)


@pytest.mark.usefixtures("_loops")
@pytest.mark.parametrize("ask", FRONTS, ids=lambda ask: ask.__name__)
@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_the_same_input_is_refused_in_the_same_words(bad: Bad, ask: Callable[[Bad], None]) -> None:
    """Argument, rule and value are those written above, whoever is asked."""
    error = refused(ask, bad)
    assert type(error) is InvalidInputError
    assert str(error) == bad.message
    assert error.argument == bad.message.partition(":")[0]


@pytest.mark.parametrize("ask", FRONTS[:3], ids=lambda ask: ask.__name__)
@pytest.mark.parametrize("bad", ONLY_FUNCTIONS.values(), ids=ONLY_FUNCTIONS)
def test_what_functions_refuse(bad: Bad, ask: Callable[[Bad], None]) -> None:
    """Functions need a case, and one that counts."""
    assert str(refused(ask, bad)) == bad.message


@pytest.mark.filterwarnings("ignore:The ``compute`` method of metric")
@pytest.mark.parametrize("bad", ONLY_FUNCTIONS.values(), ids=ONLY_FUNCTIONS)
def test_batches_without_a_case_that_counts(bad: Bad) -> None:
    """A metric waits for other batches, and has no value when none came."""
    metric = metrics.ECE(num_classes=2)
    weights = None if bad.weights is None else torch.tensor(bad.weights)
    metric.update(torch.as_tensor(bad.probs), torch.tensor(bad.labels).long(), weights)
    with pytest.raises(rw.UndefinedMetricError, match="ece: undefined, no case was given yet"):
        metric.compute()


@pytest.mark.parametrize(
    "name", ["a class too many", "a negative class", "too few labels", "a negative count",
             "counts of other classes", "counts of too few cases"]
)  # fmt: skip
def test_losses_use_the_same_words(name: str) -> None:
    """A loss calls the labels targets and the probabilities logits; its rules are the same."""
    bad = BAD[name]
    with pytest.raises(InvalidInputError) as found:
        losses.FocalLoss()(torch.tensor(bad.probs).log(), torch.tensor(bad.labels))
    error = found.value
    assert error.argument == "targets"
    expected = bad.message.replace("labels: ", "targets: ").replace("probs", "logits")
    expected = expected.replace("in labels", "in targets")
    assert str(error).replace(" or ignore_index", "") == expected


@pytest.mark.usefixtures("_loops")
@pytest.mark.parametrize(
    ("probs", "labels"),
    [
        ([[1, 0], [0, 1], [1, 0]], [0, 1, 1]),
        (GOOD, [0.0, 1.0, 1.0]),
        ([0.1, 0.6, 0.5], [False, True, True]),
        (GOOD, np.array([[2.0, 0.0], [1.0, 1.0], [0.0, 2.0]])),
    ],
    ids=["whole probabilities", "whole floats", "truth values", "counts as floats"],
)
def test_what_is_taken_is_taken_by_all(probs: Any, labels: Any) -> None:
    """Whole numbers of any type are classes and counts, and 0 and 1 are probabilities."""
    expected = rw.ece(np.asarray(probs), labels_of(labels))
    metric = metrics.ECE(num_classes=2)
    metric.update(torch.as_tensor(probs), torch.as_tensor(labels))
    assert metric.compute().item() == pytest.approx(expected, abs=1e-7)


@pytest.mark.usefixtures("_loops")
def test_the_row_is_that_of_the_batch() -> None:
    """Ignored pixels before the bad one do not change its number."""
    metric = metrics.ECE(num_classes=2, ignore_index=255)
    with pytest.raises(InvalidInputError, match=r"row 2 sums to 1\.5"):
        metric.update(torch.tensor([[9.0, 9.0], [0.4, 0.6], [1.0, 0.5]]), torch.tensor([255, 0, 1]))
    with pytest.raises(InvalidInputError, match="entry 2 is 7"):
        metric.update(torch.tensor(GOOD), torch.tensor([255, 0, 7]))


def test_too_few_raters_in_the_same_words() -> None:
    """The losses of label histograms need two labels, in the loop as in the function."""
    labels = [[2, 0], [1, 0], [0, 1]]
    with pytest.raises(InvalidInputError) as host:
        rw.epistemic_loss(GOOD, rw.Labels.from_counts(labels))
    with pytest.raises(InvalidInputError) as loop:
        metrics.LabelHistogramLosses(2).update(torch.tensor(GOOD), torch.tensor(labels))
    assert str(host.value) == str(loop.value)
    assert str(host.value).startswith("labels: needs at least 2 labels per case; 2 of 3 cases")


def test_all_on_a_pretended_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """`rw.ece` sends a tensor on a GPU to the pass above, which says the same."""
    monkeypatch.setattr(measuring, "on_gpu", lambda values: hasattr(values, "detach"))
    for bad in (BAD["NaN"], BAD["a class too many"], BAD["too many weights"]):
        assert str(refused(of_tensors, bad)) == bad.message


# masked arrays, unknown patients ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "ask"),
    [
        ("probs", lambda hidden: rw.ece(hidden([[0.9, 0.1], [0.4, 0.6]]), [0, 1])),
        ("labels", lambda hidden: rw.ece([[0.9, 0.1], [0.4, 0.6]], hidden([0, 1]))),
        ("weights", lambda hidden: rw.ece([0.9, 0.4], [0, 1], weights=hidden([1.0, 1.0]))),
        ("counts", lambda hidden: rw.Labels.from_counts(hidden([[1, 0], [0, 2]]))),
        ("probs", lambda hidden: metrics.ECE(2).update(hidden([[0.9, 0.1], [0.4, 0.6]]), [0, 1])),
        ("groups", lambda hidden: rw.predictions.Predictions.of([0.9, 0.4], [0, 1],
                                                                groups=hidden([1, 2]))),
    ],
)  # fmt: skip
def test_masked_arrays_are_refused(argument: str, ask: Callable[[Any], Any]) -> None:
    """What is hidden is neither used nor left out without a word."""

    def hidden(values: Any) -> Any:
        array = np.ma.array(values, copy=True)
        array[0] = np.ma.masked
        return array

    with pytest.raises(rw.InvalidTypeError, match="must not be a masked array") as found:
        ask(hidden)
    assert found.value.argument == argument


def test_masked_ratings_are_missing() -> None:
    """In a rating matrix, what is hidden was not rated; an open mask hides nothing."""
    ratings = np.ma.array([[0, 1], [1, 1]], mask=[[False, True], [False, False]])
    assert rw.Labels.from_ratings(ratings, num_classes=2).counts.tolist() == [[1, 0], [0, 2]]
    assert rw.ece(np.ma.array([0.1, 0.9]), [0, 1]) == pytest.approx(0.1)


@pytest.mark.parametrize(
    "groups",
    [
        ["a", None, NAN],
        np.array([1.0, NAN, NAN]),
        np.array(["2020-01-01", "NaT", "NaT"], "datetime64[D]"),
        np.array(["a", None, None], object),
        torch.tensor([1.0, NAN, NAN]),
    ],
)
def test_unknown_patients_are_refused(groups: Any) -> None:
    """They would silently be one patient."""
    expected = "2 of 3 are NaN or None .cases 1, 2.. Give each unknown patient a name"
    with pytest.raises(InvalidInputError, match=expected) as found:
        rw.evaluate(GOOD, ONE_EACH, metrics=["ece"], groups=groups, resamples=0)
    assert found.value.argument == "groups"


def test_patients_of_any_name() -> None:
    """Text, numbers and both together are names; a number is not the text that looks like it."""
    of = rw.predictions.Predictions.of
    assert of(GOOD, ONE_EACH, groups=["a", 1, "1"]).groups.tolist() == [0, 1, 2]
    assert of(GOOD, ONE_EACH, groups=np.array(["x", "y", "x"])).groups.tolist() == [0, 1, 0]


# the exceptions themselves ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        InvalidInputError("bins: must be at least 1; got 0"),
        rw.InvalidTypeError("case a: no", argument="masks", where="a"),
        rw.UndefinedMetricError("auccc: undefined, every case is right"),
        rw.MergeError("other: bins differ"),
        missing_extra("figures need matplotlib", "report"),
    ],
)
def test_errors_travel(error: RaterwiseError) -> None:
    """An error that another process sends is the same, argument and all."""
    other = pickle.loads(pickle.dumps(error))
    assert type(other) is type(error)
    assert (str(other), other.argument, other.where) == (str(error), error.argument, error.where)


def test_the_argument_is_what_the_message_begins_with() -> None:
    """A name and a colon; not a file, a metric, a sentence or an extra."""
    assert InvalidInputError("bins: must be at least 1; got 0").argument == "bins"
    assert InvalidInputError("case a: probs: no", argument="probs").argument == "probs"
    assert rw.UndefinedMetricError("auccc: undefined").argument is None
    assert missing_extra("reader: needs Pillow", "imaging").argument is None
    for other in ("p.csv: no such file", "no case was given", "a, b: must match", "--out: is", ""):
        assert argument_of(other) is None


def test_the_extra_is_named_both_ways() -> None:
    """From the index, and in a checkout."""
    text = str(missing_extra("figures need matplotlib", "report"))
    assert 'pip install "raterwise[report]"' in text
    assert 'pip install -e ".[report]"' in text


def test_renamed() -> None:
    """Somebody with other words for the argument and the place keeps the rule."""
    error = InvalidInputError("probs: must be 1; row 12 is 2; row 12", where="row 12")
    other = error.renamed("probabilities", "a voxel")
    assert str(other) == "probabilities: must be 1; a voxel is 2; row 12"
    assert (other.argument, other.where) == ("probabilities", "a voxel")
    assert str(error.renamed("z")) == "z: must be 1; row 12 is 2; row 12"


@pytest.mark.parametrize("metric", ["accuracy", "nll", "ranked_probability_score"])
def test_weights_by_place_are_told_their_name(metric: str) -> None:
    """The third argument is `per`: an array there is no choice, and no error of NumPy."""
    with pytest.raises(rw.InvalidTypeError, match=r"per: must be one value; .* \(2,\) .*weights="):
        getattr(rw, metric)([[0.2, 0.8], [0.5, 0.5]], [0, 1], np.array([1.0, 2.0]))


@pytest.mark.parametrize(
    ("metric", "option", "said"),
    [
        ("calibration_slope", {"clip": "x"}, "clip: must be a number; got 'x'"),
        ("calibration_intercept", {"clip": [1e-7]}, r"clip: must be a number; got \[1e-07\]"),
        ("ici", {"span": np.ones(2)}, r"span of ici: must be one value; .* shape \(2,\)"),
        ("auroc", {"ordered": np.ones(2)}, r"ordered of auroc: must be one value"),
        ("robust_ece_mixture", {"components": "3"}, "components: must be a whole number; got '3'"),
    ],
)
def test_options_of_another_kind_are_told(metric: str, option: Any, said: str) -> None:
    """What NumPy or Python would trip over is an error about the option."""
    samples = np.array([[[0.2, 0.8], [0.5, 0.5]], [[0.3, 0.7], [0.6, 0.4]]])
    with pytest.raises(rw.InvalidTypeError, match=said):
        rw.evaluate(rw.EnsembleBelief(samples), [0, 1], [metric], options={metric: option})


def test_a_belief_says_where_its_numbers_are() -> None:
    """A function of probabilities takes none: the message names what it has."""
    belief = rw.PointBelief([[0.2, 0.8]])
    with pytest.raises(rw.InvalidTypeError, match=r"probs: .*PointBelief.*its \.mean"):
        rw.ece(belief, [0])  # type: ignore[arg-type]
    with pytest.raises(rw.InvalidTypeError, match=r"predicted: .*\.disagreement\(\)"):
        rw.disagreement_loss(belief, rw.Labels.from_counts([[1, 1]]))  # type: ignore[arg-type]
