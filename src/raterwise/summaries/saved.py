"""Digests in files: one NPZ without pickles, the plans as JSON, the sums as arrays.

Parts of a data set that cannot be in one place are summarised where they are, and the files,
which hold no case, are merged later.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError, InvalidTypeError
from raterwise.io.files import write_bytes_atomically
from raterwise.questions import PerCaseScore, Question
from raterwise.summaries.agreement_sums import AgreementPlan, AgreementSums
from raterwise.summaries.bin_sums import BinPlan, BinSums, SoftBinPlan
from raterwise.summaries.cells import CellPlan, CellSums
from raterwise.summaries.digest import Digest, Facts

__all__ = ["FORMAT_VERSION", "load_digest", "save_digest"]

FORMAT_VERSION = 1
KIND = " summary"
FORMAT = "raterwise" + KIND

PLANS: dict[str, type] = {
    "bins": BinPlan,
    "soft bins": SoftBinPlan,
    "cells": CellPlan,
    "agreement": AgreementPlan,
}
QUESTIONS: dict[str, type] = {"question": Question, "score": PerCaseScore}


def save_digest(
    path: str | PathLike[str], digest: Digest, options: Mapping[str, Any] | None = None
) -> Path:
    """Write a digest, and the options it was made with, whole or not at all."""
    arrays: dict[str, NDArray[Any]] = {"unit_cases": digest.unit_cases}
    plans = []
    for i, (plan, summary) in enumerate(digest.summaries.items()):
        plans.append(_plan_as_dict(plan))
        for name, array in _arrays_of(summary).items():
            arrays[f"{i}_{name}"] = array
    header = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "plans": plans,
        "facts": asdict(digest.facts),
        "unit": digest.unit,
        "options": dict(options or {}),
    }
    text = json.dumps(header, ensure_ascii=False)
    arrays["header"] = np.frombuffer(text.encode("utf-8"), np.uint8)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return write_bytes_atomically(path, buffer.getvalue())


def load_digest(path: str | PathLike[str]) -> tuple[Digest, dict[str, Any]]:
    """Return a digest that `save_digest` wrote, and the options it was made with."""
    name = Path(path).name
    if not Path(path).is_file():
        raise InvalidInputError(f"{path}: there is no such file")
    try:
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as content:
            arrays = {key: content[key] for key in content.files}
        header = json.loads(bytes(arrays["header"]).decode("utf-8"))
        if not str(header["format"]).endswith(KIND):  # whatever the project was called then
            raise InvalidInputError(f"{name}: is not a summary that raterwise wrote")
    except InvalidInputError:
        raise
    except Exception as error:  # zlib, zipfile and NumPy's header parser have errors of their own
        raise InvalidInputError(
            f"{name}: is not a summary that raterwise wrote, or is damaged ({error})"
        ) from error
    if header["version"] != FORMAT_VERSION:
        raise InvalidInputError(
            f"{name}: its format must be version {FORMAT_VERSION}; got {header['version']!r}"
        )
    try:
        plans = [_plan_of_dict(content) for content in header["plans"]]
        summaries = {plan: _summary_of(plan, arrays, i) for i, plan in enumerate(plans)}
        facts = header["facts"]
        names = facts["class_names"]
        facts = Facts(**{**facts, "class_names": None if names is None else tuple(names)})
        return Digest(summaries, facts, arrays["unit_cases"], header["unit"]), header["options"]
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise InvalidInputError(f"{name}: is a damaged summary ({error!r})") from error


def _plan_as_dict(plan: Any) -> dict[str, Any]:
    kinds = {cls: kind for kind, cls in PLANS.items()}
    if type(plan) not in kinds:
        raise InvalidTypeError(f"plan: a summary of {plan} keeps cases and cannot be saved")
    content = {"kind": kinds[type(plan)], **asdict(plan)}
    if "question" in content:
        is_score = isinstance(plan.question, PerCaseScore)
        content["question"]["kind"] = "score" if is_score else "question"
    return content


def _plan_of_dict(content: dict[str, Any]) -> Any:
    content = dict(content)
    cls = PLANS[content.pop("kind")]
    if "question" in content:
        question = dict(content["question"])
        content["question"] = QUESTIONS[question.pop("kind")](**question)
    if isinstance(content.get("bins"), list):
        content["bins"] = tuple(content["bins"])
    return cls(**content)


def _arrays_of(summary: Any) -> dict[str, NDArray[Any]]:
    if isinstance(summary, CellSums):
        names: tuple[str, ...] = ("fine", "lowest", "highest", "per_unit")
    else:
        names = ("sums",)
    return {name: getattr(summary, name) for name in names}


def _summary_of(plan: Any, arrays: Mapping[str, NDArray[Any]], i: int) -> Any:
    if isinstance(plan, CellPlan):
        return CellSums(
            plan, *(arrays[f"{i}_{name}"] for name in ("fine", "lowest", "highest", "per_unit"))
        )
    if isinstance(plan, AgreementPlan):
        return AgreementSums(plan, arrays[f"{i}_sums"])
    return BinSums(plan, arrays[f"{i}_sums"])
