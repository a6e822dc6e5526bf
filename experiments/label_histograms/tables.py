"""The tables of the expert-label experiment, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from experiments.markdown import table_head, table_row
from raterwise.rules import p_in_words

__all__ = ["as_markdown"]

Found = Mapping[str, Any]

NAMES = {
    "raw": "raw",
    "temperature": "+ temperature",
    "alpha": "+ α",
    "temperature+alpha": "+ temperature + α",
    "temperature+alpha-cv": "+ temperature + α, λ chosen",
}
LEVELS = {
    "disagreement_loss": "L_φD",
    "disagreement_calibration_error": "CE_φD",
    "prior_epistemic_loss": "EL, prior",
    "posterior_epistemic_loss": "EL, posterior",
}
PAIRS = {
    "raw": ("raw", "alpha"),
    "temperature": ("temperature", "temperature+alpha"),
    "temperature, λ chosen": ("temperature", "temperature+alpha-cv"),
}
"""Without and with α, all else the same."""
CHANGES = ("disagreement_loss", "disagreement_calibration_error", "posterior_epistemic_loss")


def as_markdown(found: Iterable[Found]) -> str:
    """Return a table of values and one of differences for each data set."""
    by_data: dict[str, list[Found]] = {}
    for part in found:
        by_data.setdefault(part["data"], []).append(part)
    return "\n".join(line for data, parts in by_data.items() for line in _section(data, parts))


def _section(data: str, parts: Sequence[Found]) -> list[str]:
    first = parts[0]
    patients = f" of {first['patients']} patients" if first["patients"] else ""
    counted = first["judged"]
    return [
        f"### {data}",
        "",
        f"Fitted on {first['cases']['fit']} cases and evaluated on "
        f"{first['cases']['test']}{patients}: "
        f"{counted['disagreement_loss']} have the two raters needed for disagreement, "
        f"{counted['posterior_epistemic_loss']} the three needed for EL before and after a label. "
        f"Two raters differ with probability {first['disagreement']['observed']:.3f}; *predicted* "
        "is the mean of the model's predictions of this.",
        "",
        *_values(parts),
        "",
        "What α changes, paired (negative is better):",
        "",
        *_changes(parts),
        "",
    ]


def _values(parts: Sequence[Found]) -> list[str]:
    lines = table_head(("model", "", "predicted", *LEVELS.values()))
    for part in parts:
        for variant, name in NAMES.items():
            cells = [_cell(part["metrics"][variant][metric]) for metric in LEVELS]
            model = part["model"] if variant == "raw" else ""
            lines.append(table_row((model, name, f"{part['disagreement'][variant]:.3f}", *cells)))
    return lines


def _changes(parts: Sequence[Found]) -> list[str]:
    lines = table_head(("model", "α added to", *(LEVELS[metric] for metric in CHANGES)))
    for part in parts:
        for label, (before, after) in PAIRS.items():
            rows = [_change(part, metric, before, after) for metric in CHANGES]
            name = part["model"] if before == "raw" else ""
            lines.append(table_row((name, label, *map(_signed, rows))))
    return lines


def _change(part: Found, metric: str, before: str, after: str) -> Mapping[str, Any] | None:
    """Return the difference after minus before; the file may hold it the other way round."""
    for row in part["differences"]:
        if row["metric"] == metric and (row["first"], row["second"]) == (before, after):
            turned = {"difference": -row["difference"], "low": -row["high"], "high": -row["low"]}
            return {**row, **turned}
    return None


def _cell(estimate: Mapping[str, Any]) -> str:
    if estimate["value"] is None:
        return "undefined"
    if estimate["low"] is None or estimate["high"] is None:
        return f"{estimate['value']:.4f}"
    return f"{estimate['value']:.4f} [{estimate['low']:.4f}, {estimate['high']:.4f}]"


def _signed(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "undefined"
    ends = f"[{row['low']:+.4f}, {row['high']:+.4f}]"
    return f"{row['difference']:+.4f} {ends} ({p_in_words(row['p_value'])})"
