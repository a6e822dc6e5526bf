"""Digests in files: one NPZ without pickles, the plans as JSON, the sums as arrays.

Parts of a data set that cannot be in one place are summarised where they are, and the files,
which hold no case, are merged later. A folder of such files is the checkpoint of a long run.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterwise.errors import InvalidInputError, RaterwiseError
from raterwise.io.damaged import SENSELESS, read_archive, read_json
from raterwise.io.files import JOB_FILE, write_bytes_atomically, write_text_atomically
from raterwise.questions import Event, PerCaseScore, Question
from raterwise.streaming.checked import check_tables, hash_of
from raterwise.summaries import AgreementPlan, BinPlan, CellPlan, DeviationPlan, SimplexPlan
from raterwise.summaries.contract import keeps_cases
from raterwise.summaries.digest import Digest
from raterwise.summaries.facts import AsGiven, Confidences, Facts, Patients
from raterwise.summaries.fingerprint import Fingerprint
from raterwise.summaries.label_weights import LabelWeights
from raterwise.summaries.panel import Panel

FORMAT_VERSION = 3
KNOWN_VERSIONS = (1, 2, 3)
SEALED_SINCE = 3
KIND = " summary"
FORMAT = "raterwise" + KIND
PANEL = ("codes", "cases", "patients")
"""The arrays of a panel."""

PLANS: dict[str, type] = {
    plan.kind: plan for plan in (BinPlan, CellPlan, AgreementPlan, DeviationPlan, SimplexPlan)
}
QUESTIONS: dict[str, type] = {cls.kind: cls for cls in (Question, Event, PerCaseScore)}


def save_digest(
    path: str | PathLike[str],
    digest: Digest,
    options: Mapping[str, Any] | None = None,
    *,
    anonymous: bool = False,
    identity: str = "",
    sources: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Path:
    """Write a digest, and the options it was made with, whole or not at all.

    Of patients, the file holds 64 bits made of each name; an `anonymous` one only their number, and
    readers by theirs. `identity` says which part of which run it is; `sources` are the contents of
    the files that were added up, by which one that comes again is known; `notes` are what the
    results of these cases say of their labels.
    """
    told = {"identity": identity, "sources": list(sources), "notes": list(notes)}
    return write_bytes_atomically(path, _packed(digest, options, told, anonymous=anonymous))


def _packed(
    digest: Digest, options: Mapping[str, Any] | None, told: Mapping[str, Any], *, anonymous: bool
) -> bytes:
    """Return the content of a file; the digests of levels are such files inside of it."""
    arrays: dict[str, NDArray[Any]] = {"unit_cases": digest.unit_cases}
    if digest.weights is not None:
        arrays["unit_weights"] = digest.weights
    facts = digest.facts
    if anonymous:
        facts = replace(facts, rater_names=())
    if anonymous and facts.patients is not None:
        panel = None if facts.panel is None else facts.panel.anonymous()
        facts = replace(facts, patients=facts.patients.anonymous(), panel=panel)
    if facts.patients is not None:
        arrays |= {"patients": facts.patients.hashes, "patient_cases": facts.patients.cases}
    if facts.panel is not None:
        held = {name: getattr(facts.panel, name) for name in PANEL}
        arrays |= {f"said_{name}": values for name, values in held.items()}
    plans = list(digest.summaries)
    arrays |= _arrays_of(digest.summaries, plans)
    for j, summaries in enumerate(digest.panels.values()):
        arrays |= _arrays_of(summaries, plans, f"panel{j}_")
    header: dict[str, Any] = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "plans": [_plan_as_dict(plan) for plan in plans],
        "panels": [list(panel) for panel in digest.panels],
        "facts": _facts_as_dict(facts),
        "unit": digest.unit,
        "options": dict(options or {}),
    }
    readers = _unnamed(digest.readers) if anonymous else digest.readers
    inside: dict[str, Mapping[str, Mapping[Any, Digest]]] = {
        "level": digest.levels, "reader": readers,
    }  # fmt: skip
    for kind, digests in inside.items():
        each = [(name, own, one) for name, of in digests.items() for own, one in of.items()]
        header[f"{kind}s"] = [[name, str(own)] for name, own, _ in each]
        for i, (_, _, one) in enumerate(each):
            inner = _packed(one, None, {}, anonymous=anonymous)
            arrays[f"{kind}_{i}"] = np.frombuffer(inner, np.uint8)
    content = hash_of(arrays)
    header |= {**told, "sources": told.get("sources") or [content], "content": content}
    text = json.dumps(header, ensure_ascii=False)
    arrays["header"] = np.frombuffer(text.encode("utf-8"), np.uint8)
    seal = hashlib.sha256(arrays["header"].tobytes()).digest()
    arrays["seal"] = np.frombuffer(seal, np.uint8)  # of the header, which has that of the others
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def _unnamed(readers: Mapping[str, Mapping[Any, Digest]]) -> dict[str, dict[Any, Digest]]:
    """Return the readers by numbers: the merged ones are told apart by places, not by names."""
    return {
        who: {str(i + 1): digest for i, digest in enumerate(each.values())}
        for who, each in readers.items()
    }


@dataclass(frozen=True, eq=False)
class Saved:
    """What a file holds."""

    digest: Digest
    options: dict[str, Any]
    sources: tuple[str, ...] = ()
    """The contents that were added up; of files of earlier versions, nothing."""
    notes: tuple[str, ...] = ()
    """What the results of these cases say of their labels; likewise."""


def load_saved(path: str | PathLike[str], identity: str = "") -> Saved:
    """Return all that `save_digest` wrote.

    With an `identity`, a file of another part or run is an error.
    """
    name = Path(path).name
    if not Path(path).is_file():
        raise InvalidInputError(f"{path}: there is no such file")
    if Path(path).suffix.lower() == ".json":
        raise InvalidInputError(
            f"{name}: results cannot be merged; evaluate the cases with save_summary, and merge "
            "the summaries that it writes"
        )
    with open(path, "rb") as stream:
        return _unpacked(stream, name, identity)


def _unpacked(stream: Any, name: str, identity: str = "", depth: int = 0) -> Saved:
    try:
        arrays = read_archive(stream, name)
        header = json.loads(bytes(arrays["header"]).decode("utf-8"))
        if not str(header["format"]).endswith(KIND):  # whatever the project was called then
            raise InvalidInputError(f"{name}: is not a summary that raterwise wrote")
        version = header["version"]
    except (RaterwiseError, LookupError, TypeError, ValueError, RecursionError) as error:
        if "is not a summary" in str(error):
            raise
        raise InvalidInputError(
            f"{name}: is not a summary that raterwise wrote, or is damaged ({error})"
        ) from error
    if version not in KNOWN_VERSIONS:
        raise InvalidInputError(
            f"{name}: its format must be version {FORMAT_VERSION}; got {version!r}"
        )
    if version >= SEALED_SINCE:
        _check_seal(arrays, header, name, identity)
    if depth > 1:
        raise InvalidInputError(f"{name}: is a damaged summary (levels within levels)")
    try:
        plans = [_plan_of_dict(content) for content in header["plans"]]
        found = _summaries_of(arrays, plans)
        panels = {tuple(p): found[f"panel{j}"] for j, p in enumerate(header.get("panels", ()))}
        facts = _facts_of_dict(header["facts"], arrays)
        for tables in (found[""], *panels.values()):
            check_tables(tables, facts, arrays["unit_cases"], name)
        units = arrays["unit_cases"], header["unit"], panels, arrays.get("unit_weights")
        inside: dict[str, dict[str, dict[str, Digest]]] = {"level": {}, "reader": {}}
        for kind, digests in inside.items():
            for i, (variable, level) in enumerate(header.get(f"{kind}s", [])):
                inner = io.BytesIO(arrays[f"{kind}_{i}"].tobytes())
                own = _unpacked(inner, name, depth=depth + 1).digest
                digests.setdefault(str(variable), {})[str(level)] = own
        digest = Digest(found[""], facts, *units, inside["level"], inside["reader"])
        told = (tuple(map(str, header.get(name, ()))) for name in ("sources", "notes"))
        return Saved(digest, dict(header["options"]), *told)
    except RaterwiseError:
        raise
    except SENSELESS as error:
        raise InvalidInputError(f"{name}: is a damaged summary ({error!r:.200})") from error


def _check_seal(
    arrays: Mapping[str, NDArray[Any]], header: Mapping[str, Any], name: str, identity: str
) -> None:
    """Refuse a file of which something was changed, or one that is of another part or run."""
    seal = hashlib.sha256(arrays["header"].tobytes()).digest()
    content = hash_of(arrays, ("header", "seal"))
    if "seal" not in arrays or arrays["seal"].tobytes() != seal or header["content"] != content:
        raise InvalidInputError(f"{name}: was changed after it was written; its hash differs")
    if identity and header.get("identity") != identity:
        raise InvalidInputError(
            f"checkpoint: {name} is not of this part of this run; remove it, or give another folder"
        )


def _facts_as_dict(facts: Facts) -> dict[str, Any]:
    content = asdict(replace(facts, patients=None, panel=None))
    content["confidences"]["values"] = list(facts.confidences.values.items())
    if not facts.rater_names:  # so that versions that know no such fact read what is sent to them
        del content["rater_names"]
    if facts.label_weights is None:  # likewise
        del content["label_weights"]
    if not facts.twos + facts.threes:  # likewise
        for name in ("twos", "divided_twos", "threes", "divided_threes"):
            del content[name]
    if facts.patients is not None:
        known = facts.patients
        content["patients"] = {"more": known.more, "most": known.most, "lists": known.lists}
    if facts.panel is not None:
        panel = facts.panel
        names = [str(name) for name in panel.raters]
        content["panel"] = {"raters": names, "classes": panel.classes, "why": panel.why}
    return content


def _facts_of_dict(content: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Facts:
    """Return the facts; a file of an earlier version lacks some of them."""
    names, patients = content["class_names"], content.get("patients")
    parts: dict[str, Any] = {"class_names": None if names is None else tuple(names)}
    if "confidences" in content:
        found = content["confidences"]
        parts["confidences"] = Confidences(**{**found, "values": dict(found["values"])})
        parts["fingerprint"] = Fingerprint(**content["fingerprint"])
        parts["by_class"] = tuple(content["by_class"])
    if patients is not None:
        counted = {"lists": int(patients["more"] > 0), **patients}
        parts["patients"] = Patients(arrays["patients"], arrays["patient_cases"], **counted)
    parts["rater_names"] = tuple(map(str, content.get("rater_names", ())))
    if content.get("given") is not None:
        weights = tuple(content["given"].get("class_weights", ()))
        parts["given"] = AsGiven(**{**content["given"], "class_weights": weights})
    if (weighed := content.get("label_weights")) is not None:
        parts["label_weights"] = LabelWeights(**{k: tuple(v) for k, v in weighed.items()})
    if (panel := content.get("panel")) is not None:
        held = {name: arrays[f"said_{name}"] for name in PANEL}
        parts["panel"] = Panel(**{**panel, "raters": tuple(panel["raters"]), **held})
    return Facts(**{**content, **parts})


def _arrays_of(
    summaries: Mapping[Any, Any], plans: Sequence[Any], mark: str = ""
) -> dict[str, NDArray[Any]]:
    return {
        f"{mark}{i}_{name}": array
        for i, plan in enumerate(plans)
        if plan in summaries  # panels have nothing of the verdict
        for name, array in summaries[plan].arrays().items()
    }


def _summaries_of(
    arrays: Mapping[str, NDArray[Any]], plans: Sequence[Any]
) -> dict[str, dict[Any, Any]]:
    """Return the summaries by plan: under "" those of all cases, under "panel3" of a panel."""
    found: dict[str, dict[int, dict[str, NDArray[Any]]]] = {"": {}}
    for key, array in arrays.items():
        panel, rest = key.split("_", 1) if key.startswith("panel") else ("", key)
        number, _, name = rest.partition("_")
        if number.isdigit():
            found.setdefault(panel, {}).setdefault(int(number), {})[name] = array
    return {
        panel: {plan: plan.from_arrays(own[i]) for i, plan in enumerate(plans) if i in own}
        for panel, own in found.items()
    }


def _plan_as_dict(plan: Any) -> dict[str, Any]:
    if plan.kind not in PLANS:
        raise keeps_cases(plan)
    content = {"kind": plan.kind, **asdict(plan)}
    if "question" in content:
        content["question"]["kind"] = plan.question.kind
    return content


def _plan_of_dict(content: dict[str, Any]) -> Any:
    content = dict(content)
    kind = content.pop("kind")
    if kind == "soft bins":  # of version 1
        kind, content["spread"] = "bins", content.pop("sigma")
    if "question" in content:
        question = dict(content["question"])
        content["question"] = QUESTIONS[question.pop("kind")](**question)
    for key in ("bins", "mixture"):
        if isinstance(content.get(key), list):
            content[key] = tuple(content[key])
    return PLANS[kind](**content)


# Long runs --------------------------------------------------------------------------------------


def stamp(path: Path) -> tuple[int, int]:
    """Return size and time of a file, or of all files in a folder: they tell that it changed."""
    files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
    stats = [file.stat() for file in files]
    return sum(s.st_size for s in stats), max((s.st_mtime_ns for s in stats), default=0)


def _save(digest: Digest, path: Path, identity: str) -> None:
    save_digest(path, digest, identity=identity)


def _load(path: Path, identity: str) -> Digest:
    return load_saved(path, identity).digest


@dataclass(frozen=True)
class Checkpoint:
    """A folder with one file per finished part, and what the run is about."""

    folder: Path
    job: str
    """What the run is, in hexadecimal digits: every part has it, and its number."""
    save: Callable[[Any, Path, str], None] = _save
    load: Callable[[Path, str], Any] = _load

    @staticmethod
    def open(
        folder: str | PathLike[str],
        job: Mapping[str, Any],
        save: Callable[[Any, Path, str], None] = _save,
        load: Callable[[Path, str], Any] = _load,
    ) -> Checkpoint:
        """Return the checkpoint of a job, new or begun; that of another job is an error."""
        place = Path(folder)
        try:
            place.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise InvalidInputError(
                f"checkpoint: must be a folder, which is made where there is none; {place} is a "
                "file, or lies in one"
            ) from error
        text = json.dumps(job, sort_keys=True, default=str)
        mark = hashlib.sha256(text.encode("utf-8")).hexdigest()
        if (place / JOB_FILE).exists():
            try:
                known = read_json(place / JOB_FILE, "a checkpoint's")["job"]
            except (RaterwiseError, LookupError, TypeError) as error:
                raise InvalidInputError(f"checkpoint: {place / JOB_FILE} is damaged") from error
            if known != mark:
                raise InvalidInputError(
                    f"checkpoint: {place} holds parts of another run (other files, metrics or "
                    "options); give another folder, or remove it"
                )
            return Checkpoint(place, mark, save, load)
        # What a kill between writing and renaming leaves is nobody's.
        begun = list(place.glob(f".{JOB_FILE}.*.part"))
        if any(file not in begun for file in place.iterdir()):
            raise InvalidInputError(f"checkpoint: {place} must be empty or of an earlier run")
        write_text_atomically(place / JOB_FILE, json.dumps({"job": mark}) + "\n")
        for file in begun:
            file.unlink(missing_ok=True)
        return Checkpoint(place, mark, save, load)

    def has(self, part: int) -> bool:
        """Tell whether a part is finished."""
        return self._file(part).exists()

    def put(self, part: int, result: Any) -> None:
        """Keep the result of a part."""
        self.save(result, self._file(part), f"{self.job}:{part}")

    def get(self, part: int) -> Any:
        """Return the result of a finished part."""
        return self.load(self._file(part), f"{self.job}:{part}")

    def _file(self, part: int) -> Path:
        return self.folder / f"part_{part:06d}.npz"
