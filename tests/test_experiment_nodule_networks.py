"""Networks that rate lung nodules, on made-up ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.nodules import folds_of, one_rating, read_nodules
from raterwise.errors import InvalidInputError

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from experiments.multi_rater.data import read_study  # noqa: E402
from experiments.multi_rater.nodule_networks import Settings, train_ratings  # noqa: E402

torch.set_num_threads(1)
TINY = Settings(networks=1, width=2, side=16, epochs=1)


@pytest.fixture(name="file")
def file_of_nodules(tmp_path: Path) -> Path:
    """Thirty nodules of fifteen patients; one to four radiologists."""
    random = np.random.default_rng(0)
    raters = random.integers(1, 5, 30)
    ratings = random.integers(1, 6, (30, 4, 2)) * (np.arange(4) < raters[:, None])[..., None]
    np.savez(
        tmp_path / "lidc_nodules.npz",
        images=random.integers(0, 255, (30, 32, 32), dtype=np.uint8),
        ratings=ratings.astype(np.uint8),
        rating_names=["texture", "malignancy"],
        patient=[f"p{i // 2}" for i in range(30)],
    )
    return tmp_path / "lidc_nodules.npz"


def test_one_radiologist_is_drawn_among_those_there_are(file: Path) -> None:
    """Never an absent one; all of those that there are, over many seeds."""
    nodules = read_nodules(file, "malignancy")
    drawn = np.stack([one_rating(nodules.ratings, seed) for seed in range(200)])
    for row, ratings in zip(drawn.T, nodules.ratings, strict=True):
        assert set(row) == set(ratings[ratings >= 0])
    with pytest.raises(InvalidInputError, match="task: must be of malignancy, texture; got 'size'"):
        read_nodules(file, "size")


def test_every_nodule_is_judged_once_and_no_patient_is_in_two_folds(
    file: Path, tmp_path: Path
) -> None:
    """Five files of one network; their rows are all rows."""
    patients = read_nodules(file, "texture").patients
    folds = folds_of(patients)
    assert all(len(set(folds[patients == name])) == 1 for name in set(patients))
    assert np.bincount(folds).tolist() == [6] * 5
    files = train_ratings(file, tmp_path / "out", TINY, ["texture"])
    rows, logits = [], []
    for each in files:
        with np.load(each) as stored:
            rows.append(stored["rows"])
            logits.append(stored["logits"])
    assert sorted(np.concatenate(rows)) == list(range(30))
    assert np.concatenate(logits).shape == (30, 5)


def test_brains_of_qubiq_are_read(tmp_path: Path) -> None:
    """Seven masks each, every case a patient of its own."""
    masks = np.random.default_rng(0).integers(0, 2, (3, 7, 8, 8), dtype=np.uint8)
    np.savez(
        tmp_path / "qubiq_brain_growth.npz",
        images=255 * masks[:, 0],
        masks=masks,
        case=["a", "b", "c"],
    )
    found = read_study(tmp_path, "qubiq")
    assert found.num_raters.tolist() == [7, 7, 7] and found.names == ("a", "b", "c")
    assert np.array_equal(found.masks_of(1), masks[1])
