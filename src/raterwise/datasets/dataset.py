"""What every reader of a public data set returns: one small table, a row per case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError
from raterwise.labels import Labels

TextArray = NDArray[np.str_]


@dataclass(frozen=True, eq=False)
class Dataset:
    """The N cases of a public data set with their labels.

    What a data set does not have is None or empty. Image files are named, not opened.

    Attributes
    ----------
    name : str
        Name of the data set.
    names : tuple of str
        Name of each case in the data set.
    labels : Labels or None
        The raters' labels, if there is a single question.
    findings : mapping of str to Labels
        The same for several yes-or-no questions, by finding; class 1 is "present".
    patients : array of str of shape (N,) or None
        The patient of each case. Resample patients, and keep each on one side of a split.
    parts : array of str of shape (N,) or None
        The official split: train, validation, test.
    images : array of shape (N, ...) or None
        Pixels, where the files are arrays of them.
    paths : tuple of Path or None
        Image files.
    masks : tuple of tuples of Path or None
        The outlines of each case: one file per rater, in the order of `raters`.
    raters : tuple of str
        Who drew the masks.
    columns : mapping of str to array
        Other columns of the files.

    See Also
    --------
    datasets.read : reads one by its name.
    evaluate, evaluate_multilabel : take its labels.

    Examples
    --------
    >>> import raterwise as rw
    >>> labels = rw.Labels.from_counts([[7, 0], [2, 5]])
    >>> cases = Dataset("polyps", ("a.png", "b.png"), labels, parts=np.array(["train", "test"]))
    >>> len(cases), cases.part("test").names, cases.part("test").labels.counts.tolist()
    (2, ('b.png',), [[2, 5]])
    """

    name: str
    names: tuple[str, ...]
    labels: Labels | None = None
    findings: Mapping[str, Labels] = field(default_factory=dict)
    patients: TextArray | None = None
    parts: TextArray | None = None
    images: NDArray[Any] | None = None
    paths: tuple[Path, ...] | None = None
    masks: tuple[tuple[Path, ...], ...] | None = None
    raters: tuple[str, ...] = ()
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for what, rows in self._rows().items():
            if len(rows) != len(self):
                raise InvalidInputError(
                    f"{what}: must have a row for each of {len(self)} cases; got {len(rows)}"
                )

    def __len__(self) -> int:
        return len(self.names)

    def _rows(self) -> dict[str, Any]:
        """Return everything that has a row per case, by name."""
        single = ("labels", "patients", "parts", "images", "paths", "masks")
        found = {what: getattr(self, what) for what in single}
        found |= {f"findings {name}": labels for name, labels in self.findings.items()}
        found |= {f"columns {name}": column for name, column in self.columns.items()}
        return {what: rows for what, rows in found.items() if rows is not None}

    def __getitem__(self, rows: Any) -> Dataset:
        """Return some of the cases: by a slice, a mask or their numbers."""
        chosen = np.arange(len(self))[rows]
        if chosen.ndim != 1:
            raise InvalidInputError(f"rows: must be a slice, a mask or numbers; got {rows!r}")

        def some(values: Any) -> Any:
            if isinstance(values, Mapping):
                return {name: each[chosen] for name, each in values.items()}
            if isinstance(values, tuple):
                return tuple(values[row] for row in chosen)
            return None if values is None else values[chosen]

        by_case = (f.name for f in fields(self) if f.name not in ("name", "raters"))
        return replace(self, **{what: some(getattr(self, what)) for what in by_case})

    def part(self, name: str) -> Dataset:
        """Return the cases of one part of the official split.

        Parameters
        ----------
        name : str
            Such as "train", "validation" or "test".

        Returns
        -------
        Dataset
            Those cases, in their order.

        Examples
        --------
        >>> Dataset("two", ("a", "b"), parts=np.array(["train", "test"])).part("train").names
        ('a',)
        """
        known = [] if self.parts is None else list(dict.fromkeys(self.parts.tolist()))
        if name not in known:
            choices = ", ".join(known) or "none: there is no split"
            raise InvalidInputError(f"part: must be one of {choices}; got {name!r}")
        return self[self.parts == name]

    @property
    def positives(self) -> NDArray[np.int64]:
        """(N, findings): how many raters saw each finding, for `evaluate_multilabel`."""
        return self._counted(lambda labels: labels.counts[:, 1])

    @property
    def asked(self) -> NDArray[np.int64]:
        """(N, findings): how many raters looked for it, the `raters` of `evaluate_multilabel`."""
        return self._counted(lambda labels: labels.num_raters)

    def _counted(self, count: Any) -> NDArray[np.int64]:
        columns = [np.asarray(count(labels), np.int64) for labels in self.findings.values()]
        return np.stack(columns, axis=1) if columns else np.zeros((len(self), 0), np.int64)
