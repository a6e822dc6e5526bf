"""What a comparison of models found, and the files it is written to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from raterwise.errors import InvalidInputError
from raterwise.inference.paired import Difference
from raterwise.io.damaged import reading
from raterwise.results import Results
from raterwise.results.exports import as_frame, write_text

SCHEMA_VERSION = 1


def shared(models: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the facts, options and versions that models share, and all their warnings.

    >>> shared([{"data": {"cases": 5, "gap": 1}}, {"data": {"cases": 5, "gap": 2}}])["data"]
    {'cases': 5}
    """
    first, *others = models
    found: dict[str, Any] = {}
    for part in ("data", "options", "versions"):
        same = first.get(part, {}).items()
        found[part] = {
            key: value
            for key, value in same
            if all(part in other and other[part].get(key) == value for other in others)
        }
    found["warnings"] = list(dict.fromkeys(w for m in models for w in m.get("warnings", ())))
    return found


@dataclass(frozen=True, eq=False)
class Comparison:
    """The results of each model, the differences between each pair, and how stable the ranking is.

    Parameters
    ----------
    models : mapping of str to Results
        By the model's name.
    differences : tuple of Difference
        The differences of every pair of models, metric by metric.
    ranking : mapping of str to mapping of str to float
        For each metric, the share of resamples in which each model is the best.
    provenance : mapping, default {}
        When, with which call and from which files it was made.

    See Also
    --------
    compare : returns it.

    Examples
    --------
    >>> import raterwise as rw
    >>> models = {"sharp": [0.9, 0.2] * 20, "blunt": [0.6, 0.4] * 20}
    >>> found = rw.compare(models, [1, 0] * 20, "brier", resamples=50)
    >>> found.ranking["brier"]
    {'sharp': 1.0, 'blunt': 0.0}
    """

    models: Mapping[str, Results]
    differences: tuple[Difference, ...]
    ranking: Mapping[str, Mapping[str, float]]
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def difference(self, metric: str, first: str, second: str) -> Difference:
        """Return the difference of one metric between two models, first minus second.

        Parameters
        ----------
        metric : str
            Name of the metric.
        first, second : str
            The models, in the order in which they were given to `compare`.

        Returns
        -------
        Difference
            With its interval and p-values.

        Raises
        ------
        InvalidInputError
            If there is no such difference.

        Examples
        --------
        >>> import raterwise as rw
        >>> models = {"sharp": [0.9, 0.2] * 20, "blunt": [0.6, 0.4] * 20}
        >>> found = rw.compare(models, [1, 0] * 20, "brier", resamples=50)
        >>> round(found.difference("brier", "sharp", "blunt").difference, 4)
        -0.135
        """
        for found in self.differences:
            if (found.metric, found.first, found.second) == (metric, first, second):
                return found
        raise InvalidInputError(
            f"no difference of {metric!r} between {first!r} and {second!r} was made, in that order"
        )

    def to_dict(self, *, replicates: bool = False) -> dict[str, Any]:
        """Return plain Python values: what `to_json` writes.

        Parameters
        ----------
        replicates : bool, default False
            Whether to include the models' resampled values, which further comparisons need.

        Returns
        -------
        dict
            `schema_version`, `models`, `differences`, `ranking`, and as in results, of what all
            models share: `data`, `options`, `warnings`, `versions`, `provenance`.

        Examples
        --------
        >>> import raterwise as rw
        >>> models = {"sharp": [0.9, 0.2] * 20, "blunt": [0.6, 0.4] * 20}
        >>> rw.compare(models, [1, 0] * 20, "brier", resamples=50).to_dict()["ranking"]
        {'brier': {'sharp': 1.0, 'blunt': 0.0}}
        """
        models = {n: r.to_dict(replicates=replicates) for n, r in self.models.items()}
        return {
            "schema_version": SCHEMA_VERSION,
            "models": models,
            "differences": [asdict(found) for found in self.differences],
            "ranking": {metric: dict(shares) for metric, shares in self.ranking.items()},
            **shared(list(models.values())),
            "provenance": dict(self.provenance),
        }

    def to_json(self, path: str | Path, *, replicates: bool = False) -> None:
        """Write the comparison as JSON, whole or not at all.

        Parameters
        ----------
        path : str or path
            The file.
        replicates : bool, default False
            Whether to include the models' resampled values, which further comparisons need.

        Examples
        --------
        >>> import raterwise as rw
        >>> models = {"sharp": [0.9, 0.2] * 20, "blunt": [0.6, 0.4] * 20}
        >>> found = rw.compare(models, [1, 0] * 20, "brier", resamples=50)
        >>> path = getfixture("tmp_path") / "comparison.json"
        >>> found.to_json(path)
        >>> rw.Comparison.from_json(path).differences == found.differences
        True
        """
        content = self.to_dict(replicates=replicates)
        text = json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
        write_text(path, text)

    @staticmethod
    def from_json(path: str | Path) -> Comparison:
        """Read a comparison that `to_json` wrote.

        Parameters
        ----------
        path : str or path
            The file.

        Returns
        -------
        Comparison
            As it was written.

        Raises
        ------
        InvalidInputError
            If the file is something else, or has another version.

        Examples
        --------
        >>> import raterwise as rw
        >>> models = {"sharp": [0.9, 0.2] * 20, "blunt": [0.6, 0.4] * 20}
        >>> path = getfixture("tmp_path") / "comparison.json"
        >>> rw.compare(models, [1, 0] * 20, "brier", resamples=50).to_json(path)
        >>> list(rw.Comparison.from_json(path).models)
        ['sharp', 'blunt']
        """
        with reading(path, "a raterwise comparison", SCHEMA_VERSION) as content:
            models = {name: Results.from_dict(part) for name, part in content["models"].items()}
            made = tuple(Difference(**row) for row in content["differences"])
            # Files of before had no provenance.
            return Comparison(models, made, content["ranking"], content.get("provenance", {}))

    def to_html(self, path: str | Path) -> None:
        """Write the comparison for people: one file that opens without a network.

        Parameters
        ----------
        path : str or path
            The file.

        See Also
        --------
        report.write_comparison : with a title of your own.

        Examples
        --------
        >>> import raterwise as rw
        >>> models = {"sharp": [0.9, 0.2] * 20, "blunt": [0.6, 0.4] * 20}
        >>> path = getfixture("tmp_path") / "comparison.html"
        >>> rw.compare(models, [1, 0] * 20, "brier", resamples=50).to_html(path)
        >>> "sharp" in path.read_text(encoding="utf-8")
        True
        """
        from raterwise.report import write_comparison

        write_comparison(self, path)

    def to_csv(self, path: str | Path | None = None) -> str:
        """Return every difference with every digit as CSV, and write it where a path is given.

        Parameters
        ----------
        path : str or path, default None
            The file to write. It is written completely or not at all.

        Returns
        -------
        str
            The same as text.

        See Also
        --------
        report.as_csv : the same as text.

        Examples
        --------
        >>> import raterwise as rw
        >>> models = {"sharp": [0.9, 0.2] * 20, "blunt": [0.6, 0.4] * 20}
        >>> path = getfixture("tmp_path") / "differences.csv"
        >>> _ = rw.compare(models, [1, 0] * 20, "brier", resamples=50).to_csv(path)
        >>> print(path.read_text())
        metric,first,second,difference,debiased,low,high,p_value,adjusted_p_value
        brier,sharp,blunt,-0.135...
        """
        from raterwise.report import as_csv

        return write_text(path, as_csv(self))

    def to_latex(self, path: str | Path | None = None) -> str:
        """Return the metrics of every model as a LaTeX table, and write it where a path is given.

        Parameters
        ----------
        path : str or path, default None
            The file to write. It is written completely or not at all.

        Returns
        -------
        str
            The same as text.

        See Also
        --------
        report.as_latex : the same as text.

        Examples
        --------
        >>> import raterwise as rw
        >>> models = {"sharp": [0.9, 0.2] * 20, "blunt": [0.6, 0.4] * 20}
        >>> path = getfixture("tmp_path") / "models.tex"
        >>> _ = rw.compare(models, [1, 0] * 20, "brier", resamples=50).to_latex(path)
        >>> "toprule" in path.read_text()
        True
        """
        from raterwise.report import as_latex

        return write_text(path, as_latex(self))

    def to_markdown(self, path: str | Path | None = None) -> str:
        """Return the metrics of every model as a Markdown table, the best of each in bold.

        Parameters
        ----------
        path : str or path, default None
            The file to write. It is written completely or not at all.

        Returns
        -------
        str
            The same as text.

        See Also
        --------
        report.as_markdown : the same as text.

        Examples
        --------
        >>> import raterwise as rw
        >>> models = {"sharp": [0.9, 0.2] * 20, "blunt": [0.6, 0.4] * 20}
        >>> path = getfixture("tmp_path") / "models.md"
        >>> _ = rw.compare(models, [1, 0] * 20, "brier", resamples=50).to_markdown(path)
        >>> print(path.read_text())
        | Metric | sharp | blunt |
        | --- | --- | --- |
        | Brier score | **0.025** [...] | 0.160 [...] |
        """
        from raterwise.report import as_markdown

        return write_text(path, as_markdown(self))

    def to_frame(self, *, backend: Literal["pandas", "polars", "pyarrow"] | None = None) -> Any:
        """Return every difference as a row of a data frame.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, default None
            The data frame library; by default the first of these that is installed.

        Returns
        -------
        data frame
            With every digit.

        See Also
        --------
        Results.to_frame : the metrics of one model.

        Examples
        --------
        >>> import raterwise as rw
        >>> models = {"sharp": [0.9, 0.2] * 20, "blunt": [0.6, 0.4] * 20}
        >>> found = rw.compare(models, [1, 0] * 20, "brier", resamples=50)
        >>> found.to_frame(backend="pyarrow").column("first").to_pylist()
        ['sharp']
        """
        from raterwise.report.tables import difference_columns

        columns = difference_columns({"": self})
        columns.pop("finding")
        return as_frame(columns, backend)

    def __repr__(self) -> str:
        names = [(d, f"{d.metric}: {d.first} - {d.second}") for d in self.differences]
        width = max((len(name) for _, name in names), default=0)
        lines = [f"Comparison({', '.join(self.models)})"]
        for d, name in names:
            gap = d.difference if d.debiased is None else d.debiased
            ends = f"[{d.low:.4f}, {d.high:.4f}]"
            lines.append(f"  {name:{width}}  {gap:+8.4f}  {ends}  p = {d.adjusted_p_value:.2g}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the differences with a picture of each interval, as notebooks show them."""
        from raterwise.report.tables import differences_html

        return str(differences_html(self))
