"""Readers for public data sets, and a small real one that comes with raterwise.

`load_lidc_malignancy` and `write_demo_tables` need no files and no network. `read` opens a data set
by its name, from the files that its authors publish, and returns a `Dataset`; the `read_...`
functions are its parts; `convert_...` make small files of large ones. Nothing is downloaded, and
no pickle is opened.
"""

from raterwise.datasets.catalog import read
from raterwise.datasets.chest import read_chestxray14, read_chestxray14_readers, read_chexpert_test
from raterwise.datasets.cifar import (
    Cifar10N,
    read_cifar10,
    read_cifar10h,
    read_cifar10n,
    read_cifar100,
)
from raterwise.datasets.dataset import Dataset
from raterwise.datasets.gradings import read_gbcu, read_kaggle_dr, read_siim_isic
from raterwise.datasets.image_arrays import (
    LabelledImages,
    MedMnist,
    MedMnistPart,
    read_idx,
    read_medmnist,
    read_mnist,
    read_svhn,
)
from raterwise.datasets.image_folders import read_busi, read_covid_ct, read_oct2017, read_pocus
from raterwise.datasets.lidc import (
    LidcDemo,
    load_lidc_malignancy,
    read_lidc_ratings,
    write_demo_tables,
)
from raterwise.datasets.lidc_scans import convert_lidc_nodules, convert_lidc_ratings, read_lidc
from raterwise.datasets.mask_arrays import (
    OutlinedImages,
    convert_bubil_cells,
    read_bubil_cells,
    read_lidc_nodules,
)
from raterwise.datasets.mask_folders import read_chaksu, read_curvas, read_qubiq
from raterwise.datasets.votes import read_cifar10h_raters, read_csaw_m, read_mhist, read_mixed

__all__ = [
    "Cifar10N",
    "Dataset",
    "LabelledImages",
    "LidcDemo",
    "MedMnist",
    "MedMnistPart",
    "OutlinedImages",
    "convert_bubil_cells",
    "convert_lidc_nodules",
    "convert_lidc_ratings",
    "load_lidc_malignancy",
    "read",
    "read_bubil_cells",
    "read_busi",
    "read_chaksu",
    "read_chestxray14",
    "read_chestxray14_readers",
    "read_chexpert_test",
    "read_cifar10",
    "read_cifar10h",
    "read_cifar10h_raters",
    "read_cifar10n",
    "read_cifar100",
    "read_covid_ct",
    "read_csaw_m",
    "read_curvas",
    "read_gbcu",
    "read_idx",
    "read_kaggle_dr",
    "read_lidc",
    "read_lidc_nodules",
    "read_lidc_ratings",
    "read_medmnist",
    "read_mhist",
    "read_mixed",
    "read_mnist",
    "read_oct2017",
    "read_pocus",
    "read_qubiq",
    "read_siim_isic",
    "read_svhn",
    "write_demo_tables",
]
