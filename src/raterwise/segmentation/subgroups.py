"""Images told apart by a variable, such as the scanner: every level, and each against the rest."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from raterwise.errors import InvalidInputError
from raterwise.evaluation.judged import Judged
from raterwise.evaluation.request import Request
from raterwise.inference.settings import silent
from raterwise.results import Results, Subgroup
from raterwise.segmentation.reduction import MOST_BLOCKS, Reduction
from raterwise.segmentation.request import CaseValues, ImageRequest
from raterwise.subgroups.levels import Part, subgroups_between, with_subgroups
from raterwise.subgroups.sources import subgroups_of_digests
from raterwise.subgroups.variables import Variable
from raterwise.summaries.digest import Digest


class LevelImages:
    """Gathers images by the levels of variables that have one value per image."""

    def __init__(
        self,
        variables: Sequence[Variable],
        request: ImageRequest,
        chosen: Request,
        class_names: Sequence[str] | None,
    ) -> None:
        self.variables = variables
        self.chosen = chosen
        own = replace(request, request=chosen)
        self._levels = [[Reduction(own, class_names) for _ in v.levels] for v in variables]
        self._patients: set[int] = set()
        self.seen = 0

    def add(
        self, name: str, patient: Hashable | None, kept: Digest | CaseValues, code: int
    ) -> None:
        """Add the next image, of the patient of this number, to its level of each variable."""
        self._patients.add(code)
        for variable, levels in zip(self.variables, self._levels, strict=True):
            if self.seen < len(variable.codes):
                levels[variable.codes[self.seen]].add(name, patient, kept, code)
        self.seen += 1

    def skip(self) -> None:
        """Pass over an image that cannot be used."""
        self.seen += 1

    def in_results(self, results: Results) -> Results:
        """Return the results with the sub-groups of all images."""
        for variable in self.variables:
            if len(variable.codes) != self.seen:
                raise InvalidInputError(
                    f"subgroups: {variable.name!r} must have one value for each of {self.seen} "
                    f"images; got {len(variable.codes)}"
                )
        found: list[Subgroup] = []
        kept: list[Variable] = []
        for variable, levels in zip(self.variables, self._levels, strict=True):
            named = {
                name: one
                for name, one in zip(variable.levels, levels, strict=True)
                if one.num_classes is not None
            }
            kept.append(Variable(variable.name, tuple(named), np.empty(0, np.int64)))
            found += self._subgroups(kept[-1], list(named.values()))
        return with_subgroups(results, kept, found, self.chosen)

    def _subgroups(self, variable: Variable, levels: Sequence[Reduction]) -> Sequence[Subgroup]:
        if levels[0].request.reduction == "pooled":
            units = min(len(self._patients), MOST_BLOCKS)
            digests = {n: r.digest(units) for n, r in zip(variable.levels, levels, strict=True)}
            return subgroups_of_digests({variable.name: digests}, self.chosen)
        sides = [_Images(levels, place) for place in range(len(levels))]
        # Means over images have no common table: Holm's p stays.
        return subgroups_between(variable, sides, lambda: None, self.chosen, silent)


@dataclass(frozen=True, eq=False)
class _Images:
    """The images of a level, each with values of its own, and all others."""

    levels: Sequence[Reduction]
    place: int

    def part(self, *, inside: bool) -> Part:
        """Return one side, judged."""
        own = self.levels[self.place]
        if not inside:
            own = own.joined([r for i, r in enumerate(self.levels) if i != self.place])
        judged = own.judged_images()
        facts = judged.digest.facts
        return Part(judged, facts.images, None if facts.patients is None else facts.patients.number)

    def correlations(self, here: Judged, there: Judged) -> dict[str, float]:
        """Return nothing: patients with images on both sides are taken for two, the safe side."""
        return {}
