"""Readers for public data sets with several raters, and a small real one that comes with raterwise.

`load_lidc_malignancy` and `write_demo_tables` need no files and no network; the `read_...`
functions open the files that the data sets' authors publish.
"""

from raterwise.datasets.cifar import Cifar10N, read_cifar10, read_cifar10h, read_cifar10n
from raterwise.datasets.lidc import (
    LidcDemo,
    load_lidc_malignancy,
    read_lidc_ratings,
    write_demo_tables,
)
from raterwise.datasets.masks import OutlinedImages, read_bubil_cells, read_lidc_nodules
from raterwise.datasets.medmnist import MedMnist, MedMnistPart, read_medmnist
from raterwise.datasets.mnist import LabelledImages, read_idx, read_mnist

__all__ = [
    "Cifar10N",
    "LabelledImages",
    "LidcDemo",
    "MedMnist",
    "MedMnistPart",
    "OutlinedImages",
    "load_lidc_malignancy",
    "read_bubil_cells",
    "read_cifar10",
    "read_cifar10h",
    "read_cifar10n",
    "read_idx",
    "read_lidc_nodules",
    "read_lidc_ratings",
    "read_medmnist",
    "read_mnist",
    "write_demo_tables",
]
