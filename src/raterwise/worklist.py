"""The second-opinion worklist: which cases another expert should look at first, and what follows.

One more label is worth most if the belief is wide, not if the classes are nearly equally likely:
raters who are known to differ on a case will differ again, whatever one of them says.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np

from raterwise.beliefs import Belief
from raterwise.errors import InvalidInputError, InvalidTypeError
from raterwise.io.files import write_text_atomically
from raterwise.labels import Labels
from raterwise.results.exports import csv_text, unquoted_cell
from raterwise.rules import choose, positive_integer
from raterwise.types import FloatArray, IntArray

__all__ = ["Worklist", "worklist"]


ORDERS = ("gain", "disagreement")

FIXED = ("rank", "case", "disagreement", "expected_gain", "top_class", "top_probability")
"""The columns that a list has whatever the classes are."""


@dataclass(frozen=True, eq=False)
class Worklist:
    """Cases ranked by the value of another label, with the belief after each possible answer.

    Attributes
    ----------
    by : str
        The order of the cases.
    case_ids : tuple
        Ids of the cases.
    class_names : tuple of str
        Names of the classes.
    rows : array of shape (M,)
        Row of each case in the belief.
    disagreement : array of shape (M,)
        The probability that two raters differ.
    expected_gain : array of shape (M,)
        How much one more label is expected to lower the epistemic loss.
    probs : array of shape (M, K)
        The current belief.
    posterior : array of shape (M, K, K)
        [i, k] is the belief about case i if the expert said class k; NaN if the belief rules that
        answer out.

    See Also
    --------
    worklist.worklist : returns it.

    Examples
    --------
    >>> from raterwise import DirichletBelief
    >>> found = worklist(DirichletBelief([[0.5, 0.5], [0.9, 0.1]], [1.0, 1.0]), ["a", "b"])
    >>> found.case_ids, found.top_class.tolist(), found.top_class_after.tolist()
    (('a', 'b'), [0, 0], [[0, 1], [0, 1]])
    """

    by: str
    case_ids: tuple[Hashable, ...]
    class_names: tuple[str, ...]
    rows: IntArray
    disagreement: FloatArray
    expected_gain: FloatArray
    probs: FloatArray
    posterior: FloatArray

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def top_class(self) -> IntArray:
        """(M,): the most probable class now."""
        return np.asarray(self.probs.argmax(axis=1))

    @property
    def top_class_after(self) -> IntArray:
        """(M, K): the most probable class after each answer, -1 where that is ruled out."""
        ruled_out = np.isnan(self.posterior[:, :, 0])
        return np.where(ruled_out, -1, np.nan_to_num(self.posterior).argmax(axis=2))

    def records(self) -> list[dict[str, Any]]:
        """Return one flat record per case: what `to_csv` writes, in its order.

        Returns
        -------
        list of dict
            Keys are the columns.

        Examples
        --------
        >>> from raterwise import DirichletBelief
        >>> (record,) = worklist(DirichletBelief([[0.5, 0.5]], [1.0])).records()
        >>> record["expected_gain"], record["if_1_prob_1"]
        (0.125, 0.75)
        """
        top, after = self.top_class, self.top_class_after
        names = self.class_names
        found = []
        for i, case in enumerate(self.case_ids):
            record: dict[str, Any] = {
                "rank": i + 1,
                "case": case,
                "disagreement": float(self.disagreement[i]),
                "expected_gain": float(self.expected_gain[i]),
                "top_class": names[top[i]],
                "top_probability": float(self.probs[i, top[i]]),
            }
            record |= {f"prob_{name}": float(self.probs[i, k]) for k, name in enumerate(names)}
            for k, answer in enumerate(names):
                best, known = after[i, k], after[i, k] >= 0
                record[f"if_{answer}_top_class"] = names[best] if known else None
                for j, name in enumerate(names):
                    value = float(self.posterior[i, k, j]) if known else None
                    record[f"if_{answer}_prob_{name}"] = value
            found.append(record)
        return found

    def to_csv(self, path: str | PathLike[str]) -> Path:
        """Write one line per case, whole or not at all.

        Text that a spreadsheet would take for a formula gets an apostrophe in front.

        Parameters
        ----------
        path : str or path
            The file to write.

        Returns
        -------
        Path
            The file written.

        Examples
        --------
        >>> from raterwise import DirichletBelief
        >>> found = worklist(DirichletBelief([[0.5, 0.5]], [1.0]))
        >>> found.to_csv(getfixture("tmp_path") / "list.csv").name
        'list.csv'
        """
        rows = self.records()
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        return write_text_atomically(path, csv_text(columns))

    @staticmethod
    def from_csv(path: str | PathLike[str]) -> Worklist:
        """Read a list that `to_csv` wrote: ids are text, and `rows` are the ranks.

        The file does not contain the order of sorting; it is inferred if possible.

        Parameters
        ----------
        path : str or path
            The file to read.

        Returns
        -------
        Worklist
            The same list.

        Examples
        --------
        >>> from raterwise import DirichletBelief
        >>> found = worklist(DirichletBelief([[0.5, 0.5]], [1.0]), ["a"])
        >>> Worklist.from_csv(found.to_csv(getfixture("tmp_path") / "list.csv")).case_ids
        ('a',)
        """
        header, *lines = _read_lines(Path(path))
        # After the fixed columns: K probabilities, then for every answer a class and K of them.
        classes = math.isqrt(max(len(header) - len(FIXED) + 1, 0)) - 1
        names = tuple(name.removeprefix("prob_") for name in header[len(FIXED) :][:classes])
        if not lines or tuple(header) != _columns(names):
            raise InvalidInputError(f"{path}: is not a list that raterwise worklist --out wrote")
        cells = np.array(lines)
        answers = cells[:, len(FIXED) + classes :].reshape(len(lines), classes, classes + 1)[
            ..., 1:
        ]
        try:
            differ, gain = cells[:, 2:4].astype(np.float64).T
            probs = cells[:, len(FIXED) :][:, :classes].astype(np.float64)
            posterior = np.where(answers == "", "nan", answers).astype(np.float64)
        except ValueError as error:
            raise InvalidInputError(f"{path}: must hold numbers ({error})") from None
        by = "gain" if (np.diff(gain) <= 0).all() else "disagreement"
        ids = tuple(unquoted_cell(line[1]) for line in lines)
        return Worklist(by, ids, names, np.arange(len(lines)), differ, gain, probs, posterior)


def worklist(
    belief: Belief,
    case_ids: Sequence[Hashable] | None = None,
    by: Literal["gain", "disagreement"] = "gain",
    top: int | None = None,
    *,
    class_names: Sequence[str] | None = None,
) -> Worklist:
    """Rank the cases by how much another expert's label is worth.

    Parameters
    ----------
    belief : PointBelief, EnsembleBelief, DirichletBelief or DirichletMixtureBelief
        The belief about each case, given the existing labels (`belief.posterior(labels)`).
    case_ids : sequence, default None
        Their names; the row numbers if left out.
    by : {"gain", "disagreement"}, default "gain"
        "gain": how much one more label is expected to lower the epistemic loss
        (`belief.expected_gain()`); "disagreement": how likely two raters are to differ
        (LH eqs 17, 19). Ties are ordered by the other criterion, then as given.
    top : int, default None
        How many cases to list; all if left out.
    class_names : sequence of str, default None
        A name for each class; the numbers 0 … K-1 if left out.

    Returns
    -------
    Worklist
        The cases, with the most valuable first.

    See Also
    --------
    raterwise.AlphaCalibration : makes a belief from raters' labels.

    Examples
    --------
    >>> from raterwise import DirichletBelief
    >>> belief = DirichletBelief([[0.5, 0.5], [0.9, 0.1]], concentration=[19.0, 1.0])
    >>> found = worklist(belief, ["known to divide readers", "never seen the like"])
    >>> found.case_ids[0], found.expected_gain.round(4).tolist()
    ('never seen the like', [0.045, 0.0013])
    >>> found.posterior[0, 1]  # if the expert says class 1
    array([0.45, 0.55])
    """
    if not isinstance(belief, Belief):
        raise InvalidTypeError(
            "belief: must be a belief over class probabilities, such as DirichletBelief(probs, "
            f"concentration); got {type(belief).__name__}"
        )
    choose("by", by, ORDERS)
    ids = tuple(range(len(belief))) if case_ids is None else tuple(case_ids)
    names = tuple(map(str, range(belief.num_classes) if class_names is None else class_names))
    for name, given, wanted in (
        ("case_ids", ids, len(belief)),
        ("class_names", names, belief.num_classes),
    ):
        if len(given) != wanted:
            raise InvalidInputError(f"{name}: must match the belief; got {len(given)} for {wanted}")
    gain, differ = belief.expected_gain(), belief.disagreement()
    keys = (-differ, -gain) if by == "gain" else (-gain, -differ)  # the last one counts first
    order = np.lexsort(keys)[: None if top is None else positive_integer("top", top)]
    chosen = belief.take(order)
    return Worklist(
        by,
        tuple(ids[i] for i in order),
        names,
        order,
        differ[order],
        gain[order],
        chosen.mean,
        _after_each_answer(chosen),
    )


def _columns(names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of a list of these classes, in their order."""
    answers = (
        column
        for answer in names
        for column in (f"if_{answer}_top_class", *(f"if_{answer}_prob_{name}" for name in names))
    )
    return (*FIXED, *(f"prob_{name}" for name in names), *answers)


def _read_lines(path: Path) -> list[list[str]]:
    try:
        with open(path, newline="", encoding="utf-8") as stream:
            lines = list(csv.reader(stream, strict=True))
    except (csv.Error, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{path}: must be a CSV file in UTF-8 ({error})") from None
    if not lines or any(len(line) != len(lines[0]) for line in lines):
        raise InvalidInputError(f"{path}: every line must have as many values as the first")
    return lines


def _after_each_answer(belief: Belief) -> FloatArray:
    """Return the posterior means (M, K, K); an answer of probability 0 has none."""
    mean, classes = belief.mean, belief.num_classes
    after = np.full((len(belief), classes, classes), np.nan)
    for k in range(classes):
        possible = np.flatnonzero(mean[:, k] > 0)
        if len(possible):
            answer = Labels.from_classes(np.full(len(possible), k), num_classes=classes)
            after[possible, k] = belief.take(possible).posterior(answer).mean
    return after
