"""The papers that metrics come from, written out: who, what, where, when."""

from __future__ import annotations

from collections.abc import Iterable

from raterwise.results import Estimate

PAPERS = {
    "LH": "T. Mimori, K. Sasada, H. Matsui, I. Sato. Diagnostic uncertainty calibration: towards "
    "reliable machine predictions in medical domain. AISTATS, 2021.",
    "RECE": "M. Gupta, S. Basu, C. Arora. How reliable are the metrics used for assessing "
    "reliability in medical imaging? MICCAI, 2023.",
    "MR": "M. Riera-Marín, J. García López, J. Rodríguez-Comas, M. A. González Ballester, "
    "A. Galdran. Multi-rater calibration error estimation. UNSURE workshop at MICCAI, 2025.",
    "CCC": "X. Huang, J. Yang, L. Li, H. Deng, B. Ni, Y. Xu. Evaluating and boosting uncertainty "
    "quantification in classification. arXiv:1909.06030, 2019.",
    "Arrieta-Ibarra et al. 2022": "I. Arrieta-Ibarra, P. Gujral, J. Tannen, M. Tygert, C. Xu. "
    "Metrics of calibration for probabilistic predictions. Journal of Machine Learning Research "
    "23, 2022.",
    "Austin & Steyerberg 2019": "P. C. Austin, E. W. Steyerberg. The integrated calibration index "
    "(ICI) and related metrics for quantifying the calibration of logistic regression models. "
    "Statistics in Medicine 38:4051–4065, 2019.",
    "Brier 1950": "G. W. Brier. Verification of forecasts expressed in terms of probability. "
    "Monthly Weather Review 78:1–3, 1950.",
    "Błasiok & Nakkiran 2024": "J. Błasiok, P. Nakkiran. Smooth ECE: principled reliability "
    "diagrams via kernel smoothing. ICLR, 2024.",
    "Cox 1958": "D. R. Cox. Two further applications of a model for binary regression. Biometrika "
    "45:562–565, 1958.",
    "Davis & Goadrich 2006": "J. Davis, M. Goadrich. The relationship between precision-recall and "
    "ROC curves. ICML, 2006.",
    "Epstein 1969": "E. S. Epstein. A scoring system for probability forecasts of ranked "
    "categories. Journal of Applied Meteorology 8:985–987, 1969.",
    "Fleiss 1971": "J. L. Fleiss. Measuring nominal scale agreement among many raters. "
    "Psychological Bulletin 76:378–382, 1971.",
    "Fleiss, Levin & Paik 2003": "J. L. Fleiss, B. Levin, M. C. Paik. Statistical Methods for "
    "Rates and Proportions, 3rd edition. Wiley, 2003.",
    "Geifman & El-Yaniv 2017": "Y. Geifman, R. El-Yaniv. Selective classification for deep neural "
    "networks. NeurIPS, 2017.",
    "Geifman, Uziel & El-Yaniv 2019": "Y. Geifman, G. Uziel, R. El-Yaniv. Bias-reduced uncertainty "
    "estimation for deep neural classifiers. ICLR, 2019.",
    "Gupta & Ramdas 2022": "C. Gupta, A. Ramdas. Top-label calibration and multiclass-to-binary "
    "reductions. ICLR, 2022.",
    "Gupta et al. 2021": "K. Gupta, A. Rahimi, T. Ajanthan, T. Mensink, C. Sminchisescu, "
    "R. Hartley. Calibration of neural networks using splines. ICLR, 2021.",
    "Hanley & McNeil 1982": "J. A. Hanley, B. J. McNeil. The meaning and use of the area under a "
    "receiver operating characteristic (ROC) curve. Radiology 143:29–36, 1982.",
    "Hendrycks & Gimpel 2017": "D. Hendrycks, K. Gimpel. A baseline for detecting misclassified "
    "and out-of-distribution examples in neural networks. ICLR, 2017.",
    "Krippendorff 2011": "K. Krippendorff. Computing Krippendorff's alpha-reliability. University "
    "of Pennsylvania, 2011.",
    "Kull & Flach 2015": "M. Kull, P. Flach. Novel decompositions of proper scoring rules for "
    "classification: score adjustment as precursor to calibration. ECML PKDD, 2015.",
    "Kull et al. 2019": "M. Kull, M. Perello Nieto, M. Kängsepp, T. Silva Filho, H. Song, "
    "P. Flach. Beyond temperature scaling: obtaining well-calibrated multi-class probabilities "
    "with Dirichlet calibration. NeurIPS, 2019.",
    "Kumar et al. 2018": "A. Kumar, S. Sarawagi, U. Jain. Trainable calibration measures for "
    "neural networks from kernel mean embeddings. ICML, 2018.",
    "Kumar et al. 2019": "A. Kumar, P. Liang, T. Ma. Verified uncertainty calibration. NeurIPS, "
    "2019.",
    "Liang et al. 2018": "S. Liang, Y. Li, R. Srikant. Enhancing the reliability of "
    "out-of-distribution image detection in neural networks. ICLR, 2018.",
    "Murphy 1971": "A. H. Murphy. A note on the ranked probability score. Journal of Applied "
    "Meteorology 10:155–156, 1971.",
    "Naeini et al. 2015": "M. P. Naeini, G. F. Cooper, M. Hauskrecht. Obtaining well calibrated "
    "probabilities using Bayesian binning. AAAI, 2015.",
    "Neumann et al. 2018": "L. Neumann, A. Zisserman, A. Vedaldi. Relaxed softmax: efficient "
    "confidence auto-calibration for safe pedestrian detection. NeurIPS workshop on machine "
    "learning for intelligent transportation systems, 2018.",
    "Nguyen & O'Connor 2015": "K. Nguyen, B. O'Connor. Posterior calibration and exploratory "
    "analysis for natural language processing models. EMNLP, 2015.",
    "Popordanoska et al. 2022": "T. Popordanoska, R. Sayer, M. B. Blaschko. A consistent and "
    "differentiable Lp canonical calibration error estimator. NeurIPS, 2022.",
    "Roelofs et al. 2022": "R. Roelofs, N. Cain, J. Shlens, M. C. Mozer. Mitigating bias in "
    "calibration error estimation. AISTATS, 2022.",
    "Spiegelhalter 1986": "D. J. Spiegelhalter. Probabilistic prediction in patient management and "
    "clinical trials. Statistics in Medicine 5:421–433, 1986.",
    "Traub et al. 2024": "J. Traub, T. J. Bungert, C. T. Lüth, M. Baumgartner, K. H. Maier-Hein, "
    "L. Maier-Hein, P. F. Jäger. Overcoming common flaws in the evaluation of selective "
    "classification systems. NeurIPS, 2024.",
    "Tödter & Ahrens 2012": "J. Tödter, B. Ahrens. Generalization of the ignorance score: "
    "continuous ranked version and its decomposition. Monthly Weather Review 140:2005–2017, 2012.",
    "Vaicenavicius et al. 2019": "J. Vaicenavicius, D. Widmann, C. Andersson, F. Lindsten, "
    "J. Roll, T. B. Schön. Evaluating model calibration in classification. AISTATS, 2019.",
    "Van Calster et al. 2016": "B. Van Calster, D. Nieboer, Y. Vergouwe, B. De Cock, "
    "M. J. Pencina, E. W. Steyerberg. A calibration hierarchy for risk models was defined: from "
    "utopia to empirical data. Journal of Clinical Epidemiology 74:167–176, 2016.",
    "van Rijsbergen 1979": "C. J. van Rijsbergen. Information Retrieval, 2nd edition. "
    "Butterworths, 1979.",
    "Vecchio 1966": "T. J. Vecchio. Predictive value of a single diagnostic test in unselected "
    "populations. New England Journal of Medicine 274:1171–1173, 1966.",
    "Vickers & Elkin 2006": "A. J. Vickers, E. B. Elkin. Decision curve analysis: a novel method "
    "for evaluating prediction models. Medical Decision Making 26:565–574, 2006.",
    "Widmann et al. 2019": "D. Widmann, F. Lindsten, D. Zachariah. Calibration tests in "
    "multi-class classification: a unifying framework. NeurIPS, 2019.",
    "Yerushalmy 1947": "J. Yerushalmy. Statistical problems in assessing methods of medical "
    "diagnosis, with special reference to X-ray techniques. Public Health Reports 62:1432–1449, "
    "1947.",
}
"""By the short name that the catalog has; the four papers of this library by their letters."""


def cited(reference: str) -> list[tuple[str, str]]:
    """Return each paper of a short reference with the place in it; one not known as it stands.

    >>> cited("Brier 1950; LH eqs 3-4")[1][1]
    'eqs 3–4'
    >>> cited("Somebody 1999")
    [('Somebody 1999', '')]
    """
    found = []
    for part in reference.split("; "):
        key = next((k for k in PAPERS if part == k or part.startswith(f"{k} ")), None)
        if key is None:
            found.append((part, ""))
        else:
            found.append((PAPERS[key], part.removeprefix(key).strip().replace("-", "–")))
    return found


def papers_of(estimates: Iterable[Estimate]) -> dict[str, list[str]]:
    """Return the papers of some metrics, each with the metrics that are from it and where."""
    papers: dict[str, list[str]] = {}
    for e in estimates:
        for paper, place in cited(e.reference) if e.reference else ():
            papers.setdefault(paper, []).append(f"{e.title} ({place})" if place else e.title)
    return papers
