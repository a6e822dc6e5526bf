"""Copy the reference values that the tests use into tests/fixtures/golden.

    python tools/make_golden_fixtures.py GOLDEN_FOLDER [TARGET_FOLDER]

GOLDEN_FOLDER holds ``index.json``, ``outputs.npz`` and ``inputs_<set>.npz``: what the papers' own
released code prints on fixed inputs. The target has the same form with fewer arrays, so the tests
read either (``RATERWISE_GOLDEN=GOLDEN_FOLDER pytest tests``).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

INPUTS = (
    "q_true",
    "logits",
    "probs",
    "n_raters",
    "hist",
    "labels",
    "mc_probs",
    "alpha0",
    "mc_alpha0",
    "rem_hist",
    "rater_labels",
)

QUANTITIES = {
    "m1m0r1/lh_calib": (
        "L_sq_unbiased accuracy EL_plugin EL_unbiased CL_plugin CL_debiased DL_plugin DL_debiased "
        "L_phiD_unbiased CL_phiD_plugin CL_phiD_debiased CE_plugin CE_debiased CE_phiD_plugin "
        "CE_phiD_debiased agreement_probs cpe_decomp_bin_count cpe_decomp_el_plugin "
        "cpe_decomp_el_bias cpe_decomp_cl_plugin cpe_decomp_cl_bias dpe_bin_cl_plugin "
        "dpe_bin_cl_bias mu_phiD_unbiased L_sq_per_instance posterior_CPE EL_unbiased_prior "
        "EL_unbiased_posterior bin_index"
    ),
    "MayankGupta73/Robust-Calibration": (
        "ECE MCE SCE AECE AECE_toplabel AECE_first_m ClassjECE BrierMulti loss_CE RECE_G "
        "RECE_G_allbins RECE_M RECE_M_fixed RECE_M_gmm_weights RECE_M_gmm_means RECE_M_gmm_covs "
        "MR_ECE_top_label MR_SCE MR_AECE MR_MCE SR_ECE_majority MR_RECE_G SCE_class1_bin_prop"
    ),
    "EFS-OpenSource/calibration-framework": (
        "ECE MCE ECE_binary1d MCE_binary1d MR_ECE_positive_class MR_ECE_top_label"
    ),
    "tpopordanoska/ece-kde": (
        "bandwidth_LOO_MLE ECE_KDE_canonical ECE_KDE_canonical_log ECE_KDE_marginal "
        "ECE_KDE_top_label ECE_KDE_binary MR_kdeECE_top_label MR_kdeECE_canonical"
    ),
    "torrvision/focal_calibration": (
        "ECE MCE L2CE ECELoss AdaptiveECELoss ClasswiseECELoss OOD_AUROC_entropy "
        "OOD_AUROC_confidence"
    ),
    "Jonathan-Pearce/calibration_library": "ECE MCE",
    "mdca-loss/MDCA-Calibration": "ECE SCE",
    "dirichletcal/experiments_neurips": "guo_ECE MCE classwise_ECE",
    "markus93/NN_calibration": "ECE MCE",
    "scikit-learn/scikit-learn": "AUCCC AUCCC_ties",
}


CLINICAL_INPUTS = ("probs", "counts", "labels", "patient", "ratings", "ord_ratings")
CLINICAL = {
    "scikit-learn/scikit-learn": (
        "auc", "average precision", "sensitivity", "specificity", "ppv", "npv", "f1",
        "multi-class auc", "brier", "log loss", "multi-class brier", "multi-class log loss",
    ),
    "cran/irr": ("Krippendorff alpha", "Fleiss kappa"),
    "cran/irrCAC": ("irrCAC Krippendorff alpha",),
    "pln-fing-udelar/fast-krippendorff": ("Krippendorff alpha",),
    "xrobin/pROC": ("auc", "sensitivity", "specificity", "ppv", "npv"),
    "tdhock/WeightedROC": ("auc",),
    "cran/PRROC": ("auc, soft labels",),
    "therneau/survival": ("concordance", "concordance clustered std. error"),
    "topepo/caret": ("ppv at another prevalence", "npv at another prevalence"),
    "MSKCC-Epi-Bio/dcurves": (
        "net benefit", "net benefit of treating all", "net interventions avoided",
    ),
    "statsmodels/statsmodels": (
        "sensitivity 95% interval", "specificity 95% interval", "ppv 95% interval",
        "npv 95% interval", "calibration slope", "calibration in the large", "ICI", "fleiss kappa",
    ),
    "wch/r-source": (
        "calibration slope", "calibration in the large", "ICI", "E50", "E90",
        "loess curve at 0.05,0.1,...,0.9",
    ),
    "cran/survey": (
        "calibration slope", "calibration in the large", "calibration slope clustered std. error",
        "calibration in the large clustered std. error",
    ),
    "harrelfe/rms": (
        "val.prob Slope", "val.prob Eavg", "val.prob E90", "val.prob Brier", "val.prob S:z",
        "val.prob S:p",
    ),
    "DIDSR/calzone": (
        "calzone COX coef", "calzone cox intercept, slope fixed", "shifted probabilities",
        "calzone SpiegelhalterZ score", "calzone SpiegelhalterZ p-value", "calzone ECE-H",
        "calzone ECE-H topclass", "calzone MCE-H", "calzone MCE-H topclass",
    ),
}  # fmt: skip
"""Of the folder ``clinical``: what the tests read, by package."""


def is_used(row: dict[str, Any]) -> bool:
    """Say whether a test reads this value."""
    if row["what"] not in QUANTITIES.get(row["repo"], "").split():
        return False
    return row["params"].get("distr", "gaussian") == "gaussian"


def main(source: Path, target: Path) -> None:
    """Write the reduced index, inputs and outputs."""
    target.mkdir(parents=True, exist_ok=True)
    rows = [row for row in json.loads((source / "index.json").read_text()) if is_used(row)]
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    (target / "index.json").write_text(f"[\n{lines}\n]\n")
    with np.load(source / "outputs.npz", allow_pickle=False) as outputs:
        kept = {row["key"]: outputs[row["key"]] for row in rows if row["value"] is None}
    np.savez_compressed(target / "outputs.npz", **kept)
    for path in sorted(source.glob("inputs_*.npz")):
        with np.load(path, allow_pickle=False) as inputs:
            np.savez_compressed(
                target / path.name, **{name: inputs[name] for name in INPUTS if name in inputs}
            )


def clinical(source: Path, target: Path) -> None:
    """Write the reduced folder of clinical metrics, where there is one."""
    if not source.is_dir():
        return
    target.mkdir(parents=True, exist_ok=True)
    rows = [
        row
        for row in json.loads((source / "index_clinical.json").read_text())
        if row["what"] in CLINICAL.get(row["repo"], ())
        and ("interval" not in row["what"] or row["params"].get("method", "beta") == "beta")
        and "voxels" not in row["params"].get("ratings", "")
        and (row["what"] != "shifted probabilities" or row["set"] == "K2_N200")
        and "NOT TO BE MATCHED" not in row.get("note", "")
    ]
    fields = ("set", "what", "params", "repo", "function", "value", "key")
    lines = ",\n".join(
        json.dumps({name: row[name] for name in fields}, separators=(",", ":")) for row in rows
    )
    (target / "index_clinical.json").write_text(f"[\n{lines}\n]\n")
    with np.load(source / "outputs_clinical.npz", allow_pickle=False) as outputs:
        kept = {row["key"]: outputs[row["key"]] for row in rows if row["value"] is None}
    np.savez_compressed(target / "outputs_clinical.npz", **kept)
    for path in sorted(source.glob("inputs_*.npz")):
        with np.load(path, allow_pickle=False) as inputs:
            np.savez_compressed(
                target / path.name, **{n: inputs[n] for n in CLINICAL_INPUTS if n in inputs}
            )


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    default = Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "golden"
    chosen = Path(sys.argv[2]) if len(sys.argv) == 3 else default
    main(Path(sys.argv[1]), chosen)
    clinical(Path(sys.argv[1]) / "clinical", chosen / "clinical")
