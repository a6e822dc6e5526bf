"""What options say is checked before any data are read: a typo should not cost a long wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from raterwise.cli.options import ASKED, asked_of, comma_list


def check_told(told: Mapping[str, Any]) -> None:
    """Refuse options of `raterwise evaluate` that no data could make right."""
    from raterwise.catalog import find
    from raterwise.cli.options import prevalences
    from raterwise.errors import InvalidInputError

    check_asked(
        told["metrics"],
        asked_of(*(told[name] for name in ASKED)),
        resamples=told["resamples"],
        level=told["level"],
        seed=told["seed"],
        confidence=told["confidence_column"] is not None,
        outside=told["outside"] is not None,
    )
    for name in comma_list(told["subgroup_metrics"]):
        try:
            find(name.strip())
        except InvalidInputError as error:
            raise error.renamed("subgroup_metrics") from None
    for name in ("target_prevalence", "source_prevalence"):
        prevalences(f"--{name.replace('_', '-')}", told[name])


def check_asked(
    metrics: str | Sequence[str],
    asked: Mapping[str, Any],
    *,
    resamples: int = 0,
    level: float = 0.95,
    seed: int = 0,
    confidence: bool = False,
    outside: bool = False,
) -> None:
    """Refuse metrics, their options and settings that cannot be; `asked` is what `asked_of` gives.

    "all" stands for every metric here: whether there are two classes, or draws of an ensemble, is
    not known yet.
    """
    from raterwise.inference.settings import Settings
    from raterwise.metric import Given
    from raterwise.request import Request

    given = Given(belief=True, samples=2, confidence=confidence, outside=outside)
    settings, classes = Settings(resamples, level, seed), 2 if metrics == "all" else None
    Request.of(metrics, **asked, settings=settings, given=given, classes=classes)
