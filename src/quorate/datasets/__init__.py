"""Readers for public data sets with several raters, and a small real one that comes with quorate.

`load_lidc_malignancy` and `write_demo_tables` need no files and no network; the `read_...`
functions open the files that the data sets' authors publish.
"""

from quorate.datasets.cifar import Cifar10N, read_cifar10h, read_cifar10n
from quorate.datasets.lidc import (
    LidcDemo,
    load_lidc_malignancy,
    read_lidc_ratings,
    write_demo_tables,
)

__all__ = [
    "Cifar10N",
    "LidcDemo",
    "load_lidc_malignancy",
    "read_cifar10h",
    "read_cifar10n",
    "read_lidc_ratings",
    "write_demo_tables",
]
