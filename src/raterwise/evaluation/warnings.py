"""Warnings that matter: what a reader should know before believing the numbers.

They follow from the facts alone, so cases in memory, in a stream or in images give the same ones.
Each says what was counted. Where nothing is wrong, nothing is said.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from raterwise.binning import bin_edges
from raterwise.catalog import find
from raterwise.errors import RaterwiseWarning
from raterwise.inference.passes import Asked
from raterwise.inference.settings import Settings
from raterwise.predictions import Predictions
from raterwise.results import Estimate
from raterwise.rules import p_in_words
from raterwise.summaries.digest import Digest
from raterwise.summaries.facts import Facts

FEW_CASES, FEW_PER_BIN, FEW_PER_CLASS, FEW_FOR_KERNELS, FEW_PATIENTS = 100, 10, 10, 50, 20
LARGE_SHARE = 0.2
"""Of all cases: a patient who has more decides the figures."""
UNEQUAL = 0.5
"""Patients who are worth less than that part of their number are said to be."""
TIED = 1e-3
"""Confidences that lie closer together than this tell no cases apart."""
LEAST_SHIFT = 0.001
"""Ways of counting that differ by less than a tenth of a percentage point are not worth a word."""
MOST_NAMED = 3
UNKNOWN_RATERS = (
    "it is not known which rater gave which label: the intervals treat the raters as "
    "interchangeable and leave out any lasting differences between them"
)
"""Of resampled raters who are not known: each case then draws its labels from its own."""


def warnings_about(
    digest: Digest,
    asked: Asked,
    settings: Settings,
    estimates: Mapping[str, Estimate],
    *,
    by_image: bool = False,
) -> tuple[str, ...]:
    """Return what to know of the cases, and of the metrics asked for with their options.

    With `by_image` a metric is the mean over images, each of which has a value of its own.
    """
    facts = digest.facts
    return (
        *_about_units(digest, settings),
        *_about_cases(facts, asked, by_image=by_image),
        *_about_patients(digest, settings),
        *_about_raters(facts),
        *_about_weights(facts),
        *_about_classes(facts, asked),
        *_about_confidences(facts),
        *_about_labels(asked, estimates),
        *_about_intervals(digest, asked, settings, estimates),
        *_about_sources(digest, estimates),
        *_approximate(estimates),
    )


def warnings_about_data(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield what to know of the raters, from what results say of the data."""
    counting = (data.get("verdict") or {}).get("counting")
    if counting and counting["matters"]:
        shift = abs(float(counting["by_annotation"]) - float(counting["by_case"]))
        if shift >= LEAST_SHIFT:
            yield counting["sentence"]
    test = data.get("exchangeability")
    if test and test["p_value"] <= test["significance"]:
        yield (
            f"the raters are not interchangeable ({p_in_words(test['p_value'])}): the figures "
            "describe this panel, and another panel might say something else"
        )


def _about_units(digest: Digest, settings: Settings) -> Iterator[str]:
    together = len(digest.unit_cases) < 2 < digest.facts.cases and not digest.facts.images
    if settings.resamples and settings.unit == "cases" and together:
        if digest.facts.patients is not None and digest.facts.patients.number < 2:
            yield "no intervals: all cases are from one patient"
        else:
            yield (
                f"no intervals: all {digest.unit} are in one block, because the summary was saved "
                "with resamples 0"
            )


def _about_cases(facts: Facts, asked: Asked, *, by_image: bool) -> Iterator[str]:
    cases: float = facts.told.cases
    what = "voxel" if facts.of_voxels or by_image else "case"
    if by_image:
        cases /= facts.images
    counted = f"1 {what}" if cases == 1 else f"{cases:.{0 if cases % 1 == 0 else 1}f} {what}s"
    counted += " per image" if by_image else ""
    binned = [own["bins"] for row, own in asked.values() if row.error and "bins" in own]
    bins = max((len(bin_edges(edges)) - 1 for edges in binned), default=0)
    if cases < max(FEW_CASES, FEW_PER_BIN * bins):
        each = f" for {bins} bins, {cases / bins:.1f} per bin" if bins else ""
        yield f"only {counted}{each}: chance alone makes calibration errors large"
    kernels = [row.title for row, _ in asked.values() if "kernel" in row.tags]
    if kernels and cases < FEW_FOR_KERNELS:
        yield (
            f"only {counted} for {_some(kernels)}: below about {FEW_FOR_KERNELS} a kernel has too "
            "few neighbours to average over"
        )


def _about_patients(digest: Digest, settings: Settings) -> Iterator[str]:
    facts = digest.facts
    patients, cases = facts.named_patients, facts.images or facts.cases
    if patients is None:
        if 1 < facts.images < FEW_PATIENTS and settings.resamples:
            yield f"only {facts.images} images: the intervals allow for that and are wide"
        return
    if patients.lists + (len(patients.hashes) > 0) > 1:
        yield (
            f"the {patients.lists} summaries do not name their {patients.number:,} patients: one "
            "who is in two of them counts as two"
        )
    if 1 < patients.number < FEW_PATIENTS:  # of one patient there are no intervals at all
        yield f"only {patients.number} patients: the intervals allow for that and are wide"
    if settings.resamples and len(digest.unit_cases) > 1:
        known = patients.shares  # a stream resamples blocks of patients, and knows each of them
        shares = digest.unit_cases / digest.unit_cases.sum() if known is None else known
        worth = 1 / float((shares**2).sum())
        if worth < UNEQUAL * min(patients.number, len(shares)):
            yield (
                f"the {patients.number:,} patients have very different numbers of cases: they are "
                f"worth about {worth:,.0f} patients with equal numbers"
            )
    most = patients.largest
    # Where patients are few, each has a large share, and that has been said.
    if most > LARGE_SHARE * cases and most > 2 * cases / patients.number:
        what = "images" if facts.images else "cases"
        share = f"{most} of {cases} {what} ({most / cases:.0%})"
        yield f"one patient has {share} and dominates the figures"


def _about_raters(facts: Facts) -> Iterator[str]:
    what = "voxels" if facts.images else "cases"
    told = facts.told
    if told.under_two == told.cases:
        yield "one rater per case: disagreement and epistemic loss cannot be estimated"
    elif told.under_two:
        have = "has a single rater and says" if told.under_two == 1 else (
            "have a single rater and say"
        )  # fmt: skip
        some = f"{told.under_two:,} of {told.cases:,} {what}"
        yield f"{some} {have} nothing about how far raters disagree"
    yield from about_arbitration(facts, what)


def about_arbitration(facts: Facts, what: str = "cases") -> Iterator[str]:
    """Yield what to know where a third rater seems to have been asked to decide."""
    if facts.arbitrated:
        yield (
            f"labels differ in {facts.divided_threes:,} of the {facts.threes:,} {what} with three "
            f"labels and in {facts.divided_twos:,} of the {facts.twos:,} with two, as if a third "
            "rater had been asked where two differed: figures on disagreement and epistemic loss "
            "are then wrong, and others may be off by some points. Leave out the deciding labels"
        )


def warn_of_arbitration(predictions: Predictions, stacklevel: int) -> None:
    """Warn of the same where no results are made that could say so."""
    for message in about_arbitration(Facts.counted(predictions)):
        warnings.warn(message, RaterwiseWarning, stacklevel=stacklevel + 1)


def _about_weights(facts: Facts) -> Iterator[str]:
    """Say that the intervals take weights for the cases' own which their labels gave them."""
    weights = {} if facts.label_weights is None else facts.label_weights.of_classes
    if weights:
        each = [f"{weight:.4g} for {_names(facts)[k]}" for k, weight in weights.items()]
        yield (
            f"the weights depend on the labels alone: {_some(each)}. The intervals and the verdict "
            "are then too sure; give target_prevalence= instead"
        )


def _names(facts: Facts) -> tuple[str, ...]:
    return facts.class_names or tuple(f"class {k}" for k in range(facts.classes))


def _about_classes(facts: Facts, asked: Asked) -> Iterator[str]:
    cases = facts.by_class
    names = _names(facts)
    absent = [names[k] for k, count in enumerate(cases) if count == 0]
    if absent:
        yield (
            f"no rater chose {_some(absent)} ({len(absent)} of {len(cases)} classes): these data "
            f"cannot show whether the model recognises {'it' if len(absent) == 1 else 'them'}"
        )
    by_class = [row.title for row, own in asked.values() if row.error and row.by_class(own)]
    few = [f"{names[k]} ({n})" for k, n in enumerate(cases) if 0 < n < FEW_PER_CLASS]
    if by_class and few:
        yield (
            f"fewer than {FEW_PER_CLASS} cases of {_some(few)}: chance alone makes errors by class "
            f"({_some(by_class)}) large there"
        )


def _about_confidences(facts: Facts) -> Iterator[str]:
    # Most voxels of most images are plain background: that says nothing against the model.
    found = facts.confidences
    if found.looked_at < 2 or facts.images:
        return
    if found.high - found.low < TIED:
        low, high = f"{found.low:.4f}", f"{found.high:.4f}"
        where = f"is {low}" if low == high else f"lies between {low} and {high}"
        yield f"every confidence {where}: they do not separate the cases"
        return
    value, share = found.most_frequent
    if share > 0.5:
        yield (
            f"{share:.0%} of the confidences are exactly {value:.4g}: ranks and bins cannot "
            "separate these cases"
        )


def _about_labels(asked: Asked, estimates: Mapping[str, Estimate]) -> Iterator[str]:
    """Say that the truth seems to vary less than it can, which no honest test set does."""
    for row, _ in asked.values():
        e = estimates[row.name]
        if "variance" in row.tags and e.high is not None and e.high < 0:
            yield (
                f"{e.title} is below 0 ({e.value:.3g}): the predictions seem to know these labels. "
                "Were they used in training, or to make the predictions?"
            )


def _about_intervals(
    digest: Digest, asked: Asked, settings: Settings, estimates: Mapping[str, Estimate]
) -> Iterator[str]:
    """Say which metrics have no value without one case, patient or rater, and so no interval."""
    if not settings.resamples or (settings.unit != "raters" and len(digest.unit_cases) < 2):
        return
    found = [estimates[row.name] for row, _ in asked.values() if not row.error]
    alone = [e.title for e in found if e.value is not None and e.low is None]
    if alone:
        units = digest.unit
        of = {"raters": "raters", "both": f"{units} or raters"}.get(settings.unit, units)
        yield (
            f"no interval for {_some(alone)}: without one of the {of} "
            f"{'it has' if len(alone) == 1 else 'they have'} no value"
        )


def _about_sources(digest: Digest, estimates: Mapping[str, Estimate]) -> Iterator[str]:
    """Say whether cases or raters, resampled together, leave more of a value open."""
    shares = {e.title: e.rater_share for e in estimates.values() if e.rater_share is not None}
    raters = [title for title, share in shares.items() if share > 0.5]
    cases = [title for title, share in shares.items() if share <= 0.5]
    if raters:
        yield (
            f"most of the uncertainty of {_some(raters)} comes from the raters: more raters would "
            f"narrow it more than more {digest.unit}"
        )
    if cases:
        units = digest.unit
        yield f"most of the uncertainty of {_some(cases)} comes from the {units}, not the raters"


def _approximate(estimates: Mapping[str, Estimate]) -> Iterator[str]:
    """Say which values are sums over fine cells, and how far they may be from the exact ones."""
    bounded = [e for e in estimates.values() if e.bound is not None]
    proven = [e for e in bounded if not find(e.name).measured_bound]
    measured = [e for e in bounded if find(e.name).measured_bound]
    if proven:
        yield f"approximate values, with an error of at most: {_bounds(proven)}"
    if measured:
        yield (
            "approximate values, with an error that was below this in every data set tried, which "
            f"is no proof for others: {_bounds(measured)}"
        )


def _bounds(estimates: Sequence[Estimate]) -> str:
    known = [(e.title, e.bound) for e in estimates if e.bound is not None]
    return ", ".join(f"{name} {'< 0.001' if b < 0.001 else f'{b:.2g}'}" for name, b in known)


def _some(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    rest = len(names) - MOST_NAMED
    more = f" and {rest} more" if rest > 0 else ""
    return ", ".join(names[:MOST_NAMED]) + more
