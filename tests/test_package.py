"""The package as its users meet it: public names, import cost, version, script, wheel, pins."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import warnings
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import raterwise

ROOT = Path(__file__).parents[1]

# The names other people's code is written against. Adding one is a decision; losing one is a bug.
VOCABULARY = {
    "what the raters said": ["Labels"],
    "proper scores": [
        *("accuracy", "majority_accuracy", "brier", "top_label_brier", "nll"),
        *("ranked_probability_score", "ranked_log_score", "optimal_weights"),
    ],
    "label histograms": [
        "expected_squared_loss",
        "epistemic_loss",
        "irreducible_loss",
        "calibration_loss",
        "calibration_error",
        "dispersion_loss",
        "grouping_loss",
        "refinement_loss",
        "alpha_can_help",
    ],
    "disagreement and other statistics": [
        "disagreement_loss",
        "disagreement_calibration_loss",
        "disagreement_calibration_error",
        "disagreement_change",
        "statistic_loss",
        "statistic_calibration_loss",
    ],
    "binned calibration": [
        "ece",
        "mce",
        "rms_ce",
        "adaptive_ece",
        "ece_sweep",
        "classwise_ece",
        "sce",
        "robust_ece",
        "robust_ece_mixture",
        "multi_rater",
        *("debiased_ece", "canonical_ece", "average_calibration_error"),
    ],
    "calibration without bins": [
        *("kde_ece", "smooth_ece", "ks_error", "kuiper_error", "kernel_calibration_error"),
        *("spiegelhalter_z", "spiegelhalter_test", "kernel_calibration_test"),
    ],
    "ranking": [
        *("ccc_curve", "auccc", "aurc", "augrc", "confidence"),
        *("excess_aurc", "fpr_at_95_tpr", "failure_average_precision"),
    ],
    "agreement of the raters": ["fleiss_kappa", "krippendorff_alpha", "exchangeability_test"],
    "everything at once": ["evaluate", "evaluate_multilabel", "evaluate_stream"],
    "stability": ["stability"],
}
NAMES = [name for names in VOCABULARY.values() for name in names]
# Modules on purpose.
MODULES_BY_NAME = {
    *("confidence", "curves", "datasets", "planning", "plots", "report", "segmentation"),
    *("stability", "torch", "worklist"),
}

HEAVY = [
    *("torch", "numba", "matplotlib", "dask", "pyarrow", "sklearn", "pandas"),
    *("polars", "narwhals", "openpyxl", "scipy"),
]


def run_python(code: str) -> str:
    """Run code in a fresh interpreter, as a user's first line would, and return what it prints."""
    # An older typer says of its own imports that a newer click will not have them.
    warned = ["-W", "error", "-W", "ignore::DeprecationWarning:typer"]
    command = [sys.executable, *warned, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_the_vocabulary_is_public_and_documented(name: str) -> None:
    """Each promised name is exported and says what it is."""
    assert name in raterwise.__all__
    assert inspect.getdoc(getattr(raterwise, name))


def test_all_is_the_public_api() -> None:
    """`__all__` repeats nothing, resolves, is documented, and leaves no public name out."""
    names = list(raterwise.__all__)
    assert len(names) == len(set(names))
    objects = {name: getattr(raterwise, name) for name in names}
    undocumented = [
        name
        for name, value in objects.items()
        if (inspect.isroutine(value) or inspect.isclass(value) or inspect.ismodule(value))
        and not inspect.getdoc(value)
    ]
    assert undocumented == []
    public = {
        name
        for name, value in vars(raterwise).items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith("raterwise")
    }
    assert public - set(names) == set()
    assert set(dir(raterwise)) == {*names, "__version__"}


def test_public_functions_are_not_hidden_by_modules_of_the_same_name() -> None:
    """Importing `raterwise.evaluate` (as the command line does) leaves `rw.evaluate` callable.

    Importing a submodule binds its name in the package, over a function found lazily.
    """
    code = (
        "import json, importlib, inspect, raterwise\n"
        "for name in raterwise.__all__:\n"
        "    try: importlib.import_module('raterwise.' + name)\n"
        "    except ModuleNotFoundError: pass\n"
        "found = [n for n in raterwise.__all__ if inspect.ismodule(getattr(raterwise, n))]\n"
        "print(json.dumps(found))"
    )
    assert set(json.loads(run_python(code))) <= MODULES_BY_NAME


def test_without_pytorch_all_names_are_there() -> None:
    """help() and a star import ask for every name; who asks for `rw.torch` is told of the extra."""
    code = (
        "from importlib.machinery import PathFinder\n"
        "found = PathFinder.find_spec\n"
        "PathFinder.find_spec = lambda name, *at: None if name == 'torch' else found(name, *at)\n"
        "import pydoc, raterwise\n"
        "from raterwise import *\n"
        "print('ece' in globals(), 'torch' in dir(raterwise), len(pydoc.render_doc(raterwise)))\n"
        "try: raterwise.torch\n"
        "except raterwise.MissingExtraError as error: print(error)\n"
    )
    found = run_python(code)
    assert found.startswith("True False ") and 'pip install "raterwise[torch]"' in found


@pytest.mark.parametrize("module", ["raterwise", "raterwise.cli.app"])
def test_importing_raterwise_loads_nothing_heavy(module: str) -> None:
    """`import raterwise`, or `raterwise --help`, leaves the big packages alone until needed."""
    code = f"import sys, {module}; print([m for m in {HEAVY!r} if m in sys.modules])"
    assert run_python(code).strip() == "[]"


def test_an_unknown_name_is_an_attribute_error() -> None:
    """A misspelt name fails as on any module, and names the package and the attribute."""
    with pytest.raises(AttributeError, match=r"raterwise.*no_such_metric"):
        _ = raterwise.no_such_metric


def test_the_named_mutants_are_where_the_list_says() -> None:
    """Each mutant that once survived changes one place of today's source, and is Python still.

    Of one that is not there, none is run; and what is no Python fails every test.
    """
    named = tomllib.loads((ROOT / "tools/mutants.toml").read_text(encoding="utf-8"))["named"]
    sources = [(ROOT / "src/raterwise" / m["module"]).read_text(encoding="utf-8") for m in named]
    times = {m["name"]: s.count(m["before"]) for m, s in zip(named, sources, strict=True)}
    assert len(times) == len(named) > 12 and set(times.values()) == {1}, times
    for mutant, source in zip(named, sources, strict=True):
        compile(source.replace(mutant["before"], mutant["after"]), mutant["name"], "exec")


def test_mutants_are_judged_with_all_that_tests_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests of a copy without the pages of docs would fail before anything is broken."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    left = importlib.import_module("mutants").LEFT_BEHIND
    texts = [path.read_text(encoding="utf-8") for path in ROOT.glob("tests/test_*.py")]
    read = {name for text in texts for name in re.findall(r'(?:ROOT|parents\[1\]) / "(\w+)', text)}
    assert read >= {"docs", "examples", "src", "tools"} and not left(str(ROOT), read)


def test_the_version_has_one_source() -> None:
    """The installed metadata carry the version that the package states."""
    assert metadata.version("raterwise") == raterwise.__version__


def test_results_name_the_version_of_the_code_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not of what was once installed: a checkout may be newer, or not be installed at all."""
    found = metadata.version

    def version(name: str) -> str:
        if name == "raterwise":
            raise metadata.PackageNotFoundError(name)
        return found(name)

    monkeypatch.setattr(metadata, "version", version)
    monkeypatch.setattr(raterwise, "__version__", "9.9")
    results = raterwise.evaluate([0.2, 0.8], [0, 1], "brier", resamples=0)
    assert results.to_dict()["versions"]["raterwise"] == "9.9"


def test_the_command_line_is_installed() -> None:
    """The `raterwise` script answers --help and leaves with 0."""
    script = shutil.which("raterwise", path=sysconfig.get_path("scripts"))
    assert script is not None
    done = subprocess.run([script, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "evaluate" in done.stdout


def test_the_wheel_holds_every_file_of_the_package(tmp_path: Path) -> None:
    """The wheel holds what src holds: modules, the typing marker and the embedded data.

    The experiments, the benchmarks and the tests stay outside.
    """
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    source = ROOT / "src"
    expected = {
        path.relative_to(source).as_posix()
        for path in (source / "raterwise").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert "raterwise/py.typed" in expected
    assert packed == expected


def declared_requirements() -> list[Requirement]:
    """Read every requirement of pyproject.toml, the extras' included, less raterwise itself."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    found = [Requirement(text) for requirements in lists for text in requirements]
    return [requirement for requirement in found if requirement.name != "raterwise"]


def pins() -> dict[str, str]:
    """Read constraints.txt: name -> version; every line is a pin, a comment or empty."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if line and not line.startswith("#")]
    matches = [re.fullmatch(r"([\w.-]+)==([\w.]+)", line) for line in lines]
    assert all(matches), "constraints.txt: every line must read name==version"
    return {canonicalize_name(match[1]): match[2] for match in matches if match}


def test_every_requirement_is_pinned_within_its_bounds() -> None:
    """constraints.txt pins each declared requirement to a version that its bounds allow."""
    pinned = pins()
    requirements = declared_requirements()
    assert [r.name for r in requirements if canonicalize_name(r.name) not in pinned] == []
    wrong = [str(r) for r in requirements if pinned[canonicalize_name(r.name)] not in r.specifier]
    assert wrong == []
    assert pinned["torch"] == "2.13.0"


@pytest.mark.parametrize(
    ("module", "kind", "fails"),
    [
        ("torch.jit._script", DeprecationWarning, False),
        ("torch.jit._script", FutureWarning, True),
        ("raterwise.labels", DeprecationWarning, True),
        ("raterwise.torch.losses.focal", PendingDeprecationWarning, True),
        ("test_torch_losses", DeprecationWarning, True),
        ("raterwise.labels", UserWarning, True),
    ],
)
def test_warnings_of_our_code_are_errors(module: str, kind: type[Warning], fails: bool) -> None:
    """What another library says of its own age fails no test; anything said of ours does."""
    with warnings.catch_warnings(record=True) as seen:
        if fails:
            with pytest.raises(kind):
                warnings.warn_explicit("old", kind, "module.py", 1, module=module)
        else:
            warnings.warn_explicit("old", kind, "module.py", 1, module=module)
            assert len(seen) == 1
