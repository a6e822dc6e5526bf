"""The numbers that RECE prints in Table 1: six metrics on samples of a test set.

Mean ± standard deviation of 20 samples of 1, 5, 10, 25 and 50 % of the test images, after the value
on all of them. The text that we have ends before RECE-M on CIFAR-100.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["FRACTIONS", "TABLE", "TEST_IMAGES", "closest", "mean_of"]

FRACTIONS = (0.01, 0.05, 0.1, 0.25, 0.5)

# On all images; mean, standard deviation at 1 %; at 5 %; ….
TABLE: dict[str, dict[str, str]] = {
    "GBCU": {
        "ece": ".0802 .147 .131 .155 .090 .145 .069 .126 .032 .101 .027",
        "sce": ".0841 .092 .090 .101 .046 .112 .043 .113 .030 .096 .015",
        "adaptive_ece": ".0722 .012 .025 .077 .039 .088 .067 .138 .039 .114 .027",
        "kde_ece": ".3438 .927 .236 .531 .182 .479 .151 .338 .075 .346 .055",
        "robust_ece": ".0607 .049 .050 .062 .043 .065 .038 .066 .024 .060 .024",
        "robust_ece_mixture": ".0641 .066 .081 .080 .057 .090 .045 .075 .026 .069 .019",
    },
    "BUSI": {
        "ece": ".0726 .113 .162 .076 .092 .066 .058 .071 .042 .067 .024",
        "sce": ".0485 .075 .109 .051 .062 .044 .039 .049 .028 .047 .013",
        "adaptive_ece": ".0531 .005 .007 .037 .055 .045 .050 .084 .045 .070 .021",
        "kde_ece": ".1864 .752 .401 .530 .367 .292 .155 .186 .080 .161 .064",
        "robust_ece": ".0301 .040 .061 .028 .034 .028 .027 .034 .023 .027 .014",
        "robust_ece_mixture": ".0239 .031 .053 .029 .031 .035 .033 .032 .019 .026 .011",
    },
    "POCUS": {
        "ece": ".0280 .134 .082 .110 .032 .089 .024 .054 .016 .040 .009",
        "sce": ".0444 .100 .080 .091 .026 .077 .016 .064 .009 .053 .004",
        "adaptive_ece": ".0324 .078 .090 .158 .045 .104 .026 .074 .016 .058 .011",
        "kde_ece": ".2649 .661 .267 .326 .092 .285 .069 .273 .048 .283 .028",
        "robust_ece": ".0111 .046 .029 .042 .021 .041 .016 .022 .010 .017 .008",
        "robust_ece_mixture": ".0197 .052 .046 .059 .020 .054 .017 .036 .010 .030 .009",
    },
    "Covid-CT": {
        "ece": ".1586 .184 .188 .185 .110 .143 .061 .200 .044 .175 .027",
        "sce": ".1655 .184 .188 .188 .109 .153 .059 .208 .042 .183 .026",
        "adaptive_ece": ".1351 .089 .133 .123 .109 .155 .063 .177 .037 .164 .022",
        "kde_ece": ".3186 .793 .333 .423 .207 .381 .128 .382 .069 .360 .039",
        "robust_ece": ".1390 .071 .076 .098 .082 .073 .039 .146 .040 .145 .020",
        "robust_ece_mixture": ".1325 .099 .115 .116 .087 .087 .046 .155 .041 .143 .026",
    },
    "diabetic retinopathy": {
        "ece": ".0019 .032 .008 .013 .004 .011 .003 .005 .002 .004 .001",
        "sce": ".0228 .045 .011 .028 .006 .023 .004 .023 .002 .023 .001",
        "adaptive_ece": ".0028 .034 .007 .024 .005 .022 .003 .020 .002 .020 .002",
        "kde_ece": ".0458 .102 .019 .064 .009 .053 .004 .046 .004 .046 .003",
        "robust_ece": ".0008 .015 .007 .006 .003 .005 .003 .003 .001 .001 .001",
        "robust_ece_mixture": ".0017 .018 .008 .007 .004 .006 .003 .003 .001 .002 .001",
    },
    "SIIM-ISIC": {
        "ece": ".1586 .015 .013 .010 .006 .013 .005 .013 .002 .013 .003",
        "sce": ".1655 .015 .013 .010 .006 .013 .004 .013 .002 .013 .002",
        "adaptive_ece": ".1351 .021 .014 .017 .005 .018 .004 .015 .002 .014 .002",
        "kde_ece": "1.9551 1.965 .026 1.959 .011 1.958 .012 1.955 .005 1.955 .003",
        "robust_ece": ".1390 .007 .006 .005 .003 .006 .002 .006 .001 .006 .001",
        "robust_ece_mixture": ".0129 .015 .013 .010 .006 .013 .005 .013 .002 .013 .003",
    },
    "CIFAR-10": {
        "ece": ".0295 .056 .016 .040 .008 .033 .005 .032 .004 .031 .002",
        "sce": ".0070 .015 .003 .012 .002 .010 .001 .009 .001 .008 .000",
        "adaptive_ece": ".0287 .036 .014 .030 .010 .024 .006 .024 .004 .023 .002",
        "kde_ece": ".1232 .119 .024 .123 .012 .125 .012 .125 .007 .123 .003",
        "robust_ece": ".0288 .034 .018 .033 .010 .028 .005 .029 .004 .029 .002",
        "robust_ece_mixture": ".0287 .033 .016 .032 .010 .026 .006 .029 .004 .029 .002",
    },
    "CIFAR-100": {
        "ece": ".0857 .118 .021 .090 .016 .088 .011 .089 .007 .086 .004",
        "sce": ".0025 .006 .001 .005 .000 .005 .000 .004 .000 .003 .000",
        "adaptive_ece": ".0855 .108 .015 .076 .013 .073 .007 .071 .008 .070 .005",
        "kde_ece": ".5161 1.120 .072 .527 .042 .496 .016 .495 .012 .506 .010",
        "robust_ece": ".0854 .082 .021 .081 .017 .086 .011 .088 .007 .085 .004",
    },
}

COPIED = "SIIM-ISIC"
"""Its column "100 %" has the numbers of Covid-CT in four of six rows; it is left out of counts."""

# Accuracies of Table 2 are multiples of one over these numbers: 110/122, 74/78, 421/476.
TEST_IMAGES = {"GBCU": 122, "BUSI": 78, "POCUS": 476, "Covid-CT": 203}


def _numbers(data: str, metric: str) -> NDArray[np.float64]:
    return np.array([float(number) for number in TABLE[data][metric].split()])


def mean_of(data: str, metric: str) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Return the value on all images, the means and the standard deviations of the samples.

    >>> full, means, deviations = mean_of("GBCU", "ece")
    >>> full, means[0], deviations[-1]
    (np.float64(0.0802), np.float64(0.147), np.float64(0.027))
    """
    numbers = _numbers(data, metric)
    return numbers[0], numbers[1::2], numbers[2::2]


def closest(relative: bool) -> dict[str, int]:
    """Return in how many cells of the table each metric is closest to its own value on all images.

    >>> sum(closest(False).values()) >= 7 * 5  # ties count for each
    True
    """
    counts = dict.fromkeys(TABLE["GBCU"], 0)
    for data, rows in TABLE.items():
        if data == COPIED:
            continue
        apart = {}
        for metric in rows:
            full, means, _ = mean_of(data, metric)
            apart[metric] = np.abs(means - full) / (full if relative else 1)
        for size in range(len(FRACTIONS)):
            least = min(own[size] for own in apart.values())
            for metric, own in apart.items():
                counts[metric] += bool(own[size] <= least + 1e-9)
    return counts
