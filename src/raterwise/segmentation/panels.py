"""Who drew which mask, and the masks of other panels of raters.

A panel says how often each rater's masks count. Which voxels are looked at stays as it was with
the masks of all raters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from raterwise.errors import InvalidInputError
from raterwise.inference.raters import Panel
from raterwise.rules import several_names
from raterwise.segmentation.cases import Case, Voxels


def roster_of(
    given: Sequence[str] | None, cases: Iterable[Any], *, needed: bool = True
) -> tuple[str, ...]:
    """Return the raters: as given, or those whom all images of a list name, in their order.

    Where `needed`, it is an error if nobody says who they are.

    >>> ann = Case([0.2, 0.8], [[0, 1], [0, 1]], raters=("ann", "bob"))
    >>> roster_of(None, [ann, Case([0.2, 0.8], [[0, 1]], raters=("cat",))])
    ('ann', 'bob', 'cat')
    """
    if given is not None:
        names = tuple(str(name) for name in several_names("raters", given))
        if len(set(names)) < len(names):
            raise InvalidInputError(f"raters: must differ; got {', '.join(names)}")
        # Drawing somebody who drew no mask would draw nobody.
        drew = {str(name) for case in _listed(cases) for name in _named(case) or names}
        return tuple(name for name in names if name in drew) if drew < set(names) else names
    if not needed:
        return ()
    named = [_named(case) for case in _listed(cases)]
    if not named or None in named:
        raise InvalidInputError(
            'unit: "raters" and "both" need to know who drew which mask, and the images do not say '
            "it; name them in the order of the masks (raters=, --raters ann,bob), or in each image "
            "(Case(raters=), or the column rater_names of a manifest)"
        )
    return tuple(dict.fromkeys(str(name) for each in named for name in each or ()))


def _named(case: Any) -> Sequence[Any] | None:
    found = case.raters if isinstance(case, Case) else getattr(case, "rater_names", None)
    return None if found is None else tuple(found)


def _listed(cases: Iterable[Any]) -> Sequence[Any]:
    return cases if isinstance(cases, Sequence) else ()


def names_of(case: Case, masks: int, roster: Sequence[str]) -> tuple[str, ...]:
    """Return who drew each mask of an image: one of the roster, where there is one.

    >>> names_of(Case([0.2, 0.8], [[0, 1], [0, 1]]), 2, ("ann", "bob"))
    ('ann', 'bob')
    """
    names = tuple(map(str, case.raters)) if case.raters is not None else tuple(roster)
    if not roster:
        return names
    if len(names) != masks or len(set(names)) < masks:
        raise InvalidInputError(
            f"raters: must name each of the {masks} masks once; got {', '.join(names)}"
        )
    if unknown := [name for name in names if name not in roster]:
        raise InvalidInputError(
            f"raters: must be among {', '.join(roster)}; got {', '.join(unknown)}"
        )
    return names


def voxels_of(voxels: Voxels, times: Panel) -> Voxels | None:
    """Return the voxels with each mask counted so often; None where none is left."""
    masks = zip(voxels.raters, times, strict=True)
    chosen = tuple(mask for mask, often in masks for _ in range(often))
    return replace(voxels, raters=chosen) if chosen else None
