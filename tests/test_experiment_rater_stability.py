"""MR Table 1 with made-up raters: the formula of the effective number of raters, and the tables."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from experiments.commands import app
from experiments.multi_rater.classification import (
    METRICS,
    Column,
    Settings,
    agreement,
    drawn_raters,
    effective_raters,
    factor,
    judged_column,
)
from experiments.multi_rater.columns import columns_of
from experiments.multi_rater.curves import curves_of
from experiments.multi_rater.rater_stability import as_markdown, run
from experiments.multi_rater.readings import (
    READINGS,
    Cases,
    change_with_bins,
    correlations,
    made_up,
    variations,
)
from raterwise.stability.parts import Partition

QUICK = Settings(draws=10, repeats=5)


def two_classes(z: np.ndarray, positive: np.ndarray, raters: int, **more: object) -> Column:
    """A column of two classes with as many raters of every case."""
    return Column(
        "made up",
        np.stack((1 - z, z), axis=1),
        np.stack((raters - positive, positive), axis=1),
        question="positive",
        metrics=("ece",),
        **more,  # type: ignore[arg-type]
    )


def test_raters_are_drawn_without_replacement() -> None:
    """Never more of a class than there are; on average their share; fewer raters stay whole."""
    counts = np.array([[3, 1, 0], [0, 2, 8], [1, 0, 0]])
    drawn = np.stack([drawn_raters(counts, 4, (0, i)) for i in range(2000)])
    assert (drawn <= counts).all()
    assert (drawn.sum(axis=2) == [4, 4, 1]).all()
    # Hypergeometric: 4 of 10 raters, 8 of whom say class 2: 3.2 of them.
    assert drawn[:, 1, 2].mean() == pytest.approx(3.2, abs=0.05)
    assert (drawn[:, 0] == [3, 1, 0]).all()


def test_agreement_is_found_where_it_is_known() -> None:
    """q = z + noise of deviation 0.1: A = 0.01, and B = E q(1 - q); any number of raters."""
    random = np.random.default_rng(0)
    z = random.uniform(0.3, 0.7, 200_000)
    q = z + random.choice([-0.1, 0.1], len(z))
    for raters in (2, 9):
        mu = random.binomial(raters, q) / raters
        a, b = agreement(z, mu, np.full(len(z), raters))
        assert a == pytest.approx(0.01, abs=0.0015)
        assert b == pytest.approx(np.mean(q * (1 - q)), abs=0.001)
    # Kish: with ρ = A / (A + B), n / (1 + (n - 1) ρ).
    rho = 0.01 / 0.24
    assert effective_raters(0.01, 0.23, np.array([9])) == pytest.approx(9 / (1 + 8 * rho))


@pytest.mark.parametrize("spread", [0.0, 0.25, 0.45])
def test_the_effective_number_of_raters_predicts_the_factor(spread: float) -> None:
    """Nine raters who agree little, somewhat, and almost always."""
    random = np.random.default_rng(1)
    z = random.uniform(0.45, 0.55, 1500)
    q = np.clip(z + random.choice([-spread, spread], len(z)), 0, 1)
    column = two_classes(z, random.binomial(9, q), 9)
    found = judged_column(column, QUICK)
    variation = found["variation"]["ece"]
    measured = factor(variation["1"], variation["all"])["value"]
    assert measured == pytest.approx(found["predicted"]["ece"], rel=0.2)
    expected = np.sqrt(effective_raters(spread**2, np.mean(q * (1 - q)), np.array([9])))
    assert found["predicted"]["ece"] == pytest.approx(expected, rel=0.1)
    # Where labels are drawn in the place of cases, agreement does not matter: √9.
    drawn = factor(variation["1"], variation["all, labels drawn"])["value"]
    assert drawn == pytest.approx(3, rel=0.2)


def test_the_command_reads_raters_and_makes_tables(tmp_path: Path) -> None:
    """CheXNet's findings and CIFAR-10H as they lie in their files; again without the data."""
    random = np.random.default_rng(0)
    data, out = tmp_path / "data", tmp_path / "out"
    (data / "cxr14_readers").mkdir(parents=True)
    np.save(data / "cifar10h_counts.npy", random.multinomial(9, np.full(10, 0.1), 200))
    np.savez(
        data / "cifar10_test_outputs.npz",
        probs_vgg16_keras=random.dirichlet(np.ones(10), 200),
        logits_resnet50_psr=random.normal(size=(200, 10)),
        probs_lenet5_netcal=random.dirichlet(np.ones(10), 200),
    )
    names = [f"{i:08d}_000.png" for i in range(60)]
    np.savez(
        data / "cxr14_chexnet_test.npz",
        probs=random.random((60, 2)),
        image=names[:50],
        classes=["Mass", "Pleural_Thickening"],
    )
    lines = ["Image ID,Patient ID,Reader ID,Mass,Pleural Thickening"]
    for i, name in enumerate(names):
        for reader in range(3):
            lines.append(f"{name},{i // 2},{reader},{'YES' if reader < 2 else 'NO'},NO")
    (data / "cxr14_readers" / "all_findings_individual_readers.csv").write_text("\n".join(lines))
    (_, (mass,)) = list(columns_of(data))[-1]  # nobody saw the other finding
    assert mass.name == "Mass" and mass.counts.tolist() == [[1, 2]] * 50
    assert mass.patients is not None and len(set(mass.patients)) == 25
    command = ["rater_stability", "--out", str(out)]
    quick = ["--data", str(data), "--draws", "2", "--repeats", "2"]
    first = CliRunner().invoke(app, [*command, *quick])
    assert first.exit_code == 0, first.output
    assert "| CheXNet × radiologists | 50 | 3.0 | ECE |" in first.stdout
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert {row["metric"] for row in summary} == {"ece", "kde_ece", "classwise_ece", "robust_ece"}
    again = CliRunner().invoke(app, [*command, "--judge-only", "--data", str(tmp_path / "none")])
    assert again.stdout.split("Written")[0] == first.stdout.split("Written")[0]
    none = CliRunner().invoke(app, ["rater_stability", "--out", str(tmp_path / "none")])
    assert none.exit_code == 2 and "must hold what was judged" in none.stderr
    wrong = [*command, "--data", str(tmp_path / "none")]
    assert "must hold cifar10h_counts.npy" in CliRunner().invoke(app, wrong).stderr
    (out / "foreign.json").write_text('{"made_of": {"version": 1}}', encoding="utf-8")
    assert CliRunner().invoke(app, command).stdout == again.stdout


def test_what_a_bin_is_wrong_by_is_no_disagreement() -> None:
    """Raters who differ at random about a model that is 0.2 too sure: A = 0, B = 0.5 · 0.5."""
    random = np.random.default_rng(0)
    mu = random.binomial(9, 0.5, 100_000) / 9
    a, b = agreement(np.full(len(mu), 0.7), mu, np.full(len(mu), 9))
    assert (a, b) == (pytest.approx(0, abs=0.001), pytest.approx(0.25, abs=0.001))


def test_curves_of_raters_who_agree_are_one() -> None:
    """MR Fig 3: the same cases are taken away by one rater and by all; fewer raters move more."""
    random = np.random.default_rng(0)
    truth = random.random(300)
    probs = np.stack((1 - truth, truth), axis=1)
    said = random.random((300, 1)) < truth[:, None]
    agreed = Column("agreed", probs, 4 * np.hstack((~said, said)).astype(np.int64))
    np.testing.assert_allclose(curves_of(agreed, "ece", 1), curves_of(agreed, "ece", None))
    seen = random.binomial(20, truth)
    apart = Column("apart", probs, np.stack((20 - seen, seen), axis=1))
    one, several = (np.abs(np.diff(curves_of(apart, "ece", n))).mean() for n in (1, None))
    assert 2 < one / several < 20**0.5 + 1


@pytest.mark.parametrize(("redrawn", "growing"), READINGS.values())
def test_total_variations_of_every_reading_follow_from_variances(
    redrawn: bool, growing: bool
) -> None:
    """An error far above its noise is a mean, and its changes are normal: √(2/π) of their spread.

    With labels of variance v, bootstrapped from N cases, the means of m and m' of them differ with
    variance v (1/m - 1/m') where the parts grow and the labels stay, v (1/m + 1/m' - 2/N) where
    parts are drawn anew, and v (1/m + 1/m' + 2/N) where the labels are drawn again.
    """
    size, raters = 2000, 7
    random = np.random.default_rng(1)
    mu = random.binomial(raters, 0.5, size) / raters
    cases = Cases(np.full(size, 0.99), mu, np.full(size, float(raters)))
    partition = Partition(repeats=200)
    ends = np.array(partition.ends(size))
    first, second = 1 / ends[:-1], 1 / ends[1:]
    for one, variance in ((True, 0.25), (False, mu.var())):
        if one and redrawn:
            changes = first + second + 2 / size
        else:
            changes = first - second if growing else first + second - 2 / size
        expected = np.sqrt(2 / np.pi * variance * changes).sum()
        found = variations(cases, one=one, redrawn=redrawn, growing=growing, partition=partition)
        assert found.mean() == pytest.approx(expected, rel=0.05)


def test_a_rater_drawn_for_each_part_gives_the_factors_of_the_paper() -> None:
    """MR Table 1 has .25 ± .06 and .04 ± .01 for MHIST: more than √7 apart, as this reading."""
    cases, partition = made_up(0.5), Partition(repeats=50)
    sums = {
        (one, redrawn): variations(
            cases, one=one, redrawn=redrawn, growing=True, partition=partition
        )
        for one, redrawn in ((True, False), (True, True), (False, False))
    }
    several = sums[False, False].mean()
    assert sums[True, False].mean() / several < 7**0.5 < sums[True, True].mean() / several
    assert sums[True, True].mean() == pytest.approx(0.25, abs=0.06)
    assert several == pytest.approx(0.04, abs=0.01)


def test_the_rater_of_an_image_is_one_person() -> None:
    """Raters who agree are as steady as one; of two who differ, a change of rater is a jump."""
    disc = np.hypot(*(np.mgrid[:32, :32] - 16.0)) < 8
    partition = Partition(repeats=3)
    agreed = Cases.of_image(np.stack((disc, disc)), drawn_by=0)
    one, several = (
        variations(agreed, one=one, redrawn=True, growing=True, partition=partition)
        for one in (True, False)
    )
    np.testing.assert_allclose(one, several)
    apart = Cases.of_image(np.stack((disc, np.zeros_like(disc))), drawn_by=0)
    assert np.array_equal(apart.mu, disc.ravel() / 2)
    said = {tuple(apart.one_rater(np.random.default_rng(i))) for i in range(20)}
    assert said == {tuple(disc.ravel().astype(float)), (0.0,) * 1024}


def test_raters_hang_together_as_they_do_in_each_bin() -> None:
    """Two bins of labels that all raters share (ρ = 1), or give independently (ρ = 0)."""
    random = np.random.default_rng(0)
    z = np.repeat([0.5, 0.8, 0.95], [20_000, 20_000, 49])  # the last bin has too few cases
    mu = np.where(z == 0.5, random.random(len(z)) < 0.5, random.binomial(9, 0.7, len(z)) / 9)
    np.testing.assert_allclose(correlations(Cases(z, mu, np.full(len(z), 9.0))), [1, 0], atol=0.01)


def test_one_bin_more_changes_what_cancels_within_it() -> None:
    """Errors of 0.5 either way at 0.04 and 0.06, which cancel where no edge is between them.

    Of 5 … 30 bins only 17 … 24 have one (such as 1/20), so that ECE is 0.5 with
    these and 0 with the others: two changes of 0.5 in 25.
    """
    cases = Cases(np.array([0.04, 0.06]), np.array([0.54, -0.44]), np.full(2, 2.0))
    assert change_with_bins(cases, one=False, share=1.0, repeats=2) == pytest.approx(1 / 25)


def test_kept_outputs_make_the_table_of_the_docs(tmp_path: Path) -> None:
    """Every row of the page follows from the files beside the experiments."""
    root = Path(__file__).parents[1]
    for file in (root / "experiments" / "outputs" / "rater_stability").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    rows = run(None, tmp_path)
    page = (root / "docs" / "reproduction" / "multi_rater.md").read_text(encoding="utf-8")
    lines = [line for line in as_markdown(rows).splitlines() if line.startswith("|")]
    assert len(lines) > 20
    assert all(line in page for line in lines)
    # Every error of every column; of the two classes of a finding cwECE is ECE of the positive one.
    for column in {row["column"] for row in rows}:
        own = {row["metric"] for row in rows if row["column"] == column}
        assert own == set(METRICS) - ({"classwise_ece"} if "CheXNet" in column else set()), column
