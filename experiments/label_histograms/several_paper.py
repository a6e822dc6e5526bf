"""The numbers that LH prints for blood cells (MDS): Table 6, and the MDS columns of Table 2.

Table 6 stands sideways in the paper, and some numbers of our copy of its text are upside down: 6
and 9 change places, and a 7 may be read as a 2. L_sq - EL, the same in every row, Table 1, which
repeats columns of it, and rows that α cannot change settle most digits; what they do not settle is
left out.
"""

from __future__ import annotations

__all__ = ["TABLE_6", "paper_value"]

Row = tuple[str, str, bool]
"""Method, scaling, with α."""

ROWS: tuple[Row, ...] = tuple(
    (method, scaling, alpha)
    for method in ("raw", "mcdo", "tta")
    for scaling in ("none", "ts", "vs", "ms")
    for alpha in (False, True)
)
COLUMNS = (
    *("accuracy", "squared_loss", "epistemic_loss", "calibration_error"),
    *("disagreement_loss", "disagreement_calibration_error"),
)
# In the order of ROWS: networks that learnt from one label, and from all.
TABLE_6 = {
    "1": (
        *(".9006 .2515 .0435 .0600 .1477 .0628", ".9006 .2515 .0435 .0600 .1454 .0406"),
        *(".9006 .2509 .0430 .0575 .1482 .0663", ".9006 .2509 .0430 .0575 .1445 .0261"),
        *(".9010 .2515 .0435 .0579 .1489 .0696", ".9010 .2515 .0435 .0579 .1449 .0318"),
        *(".8992 .2532 .0453 .0656 .1484 .0663", ".8992 .2532 .0453 .0656 .1453 .0355"),
        *(".8983 .2517 .0437 .0586 .1470 .0562", ".8996 .2518 .0438 .0610 .1450 .0346"),
        *(".8986 .2515 .0435 .0579 .1479 .0635", ".8991 .2515 .0435 .0586 .1442 .0186"),
        *("? .2521 .0441 .0589 .1487 .0664", ".9009 .2519 .0439 .0575 .1446 .0244"),
        *(".8970 .2536 .0456 ? .1479 .0612", ".8986 .2534 .0454 ? .1449 .0279"),
        *(".9013 .2458 .0378 .0642 .1441 .0488", ".9025 .2456 .0376 ? .1428 .0334"),
        *(".9012 .2459 .0379 .0646 .1448 .0553", ".9011 .2458 .0378 .0632 .1422 .0197"),
        *(".9031 .2471 .0392 .0671 .1458 .0598", ".9025 .2470 .0391 .0657 .1428 .0247"),
        *(".9001 .2489 .0410 .0756 .1456 .0561", ".8991 .2487 .0407 .0750 .1431 .0268"),
    ),
    "all": (
        *(".8990 .2460 .0380 .0590 .1448 .0539", ".8990 .2460 .0380 .0590 .1430 ?"),
        *(".8990 .2459 .0379 .0587 .1449 .0545", ".8990 .2459 .0379 .0587 .1427 .0269"),
        *(".8996 .2461 .0381 .0602 .1452 .0563", ".8996 .2461 .0381 .0602 .1431 .0310"),
        *(".8978 .2480 .0400 .0710 .1451 .0563", ".8978 .2480 .0400 .0710 .1428 .0274"),
        *(".8989 .2460 .0380 .0561 .1446 .0505", ".9003 .2458 .0378 .0568 .1426 .0237"),
        *(".8995 .2458 .0378 .0579 .1447 .0521", "? .2460 .0380 .0581 .1423 .0180"),
        *(".9004 .2461 .0381 .0593 .1448 .0531", ".9002 .2460 .0380 .0579 .1426 .0228"),
        *("? .2477 .0397 .0704 .1448 .0529", ".8986 .2478 .0399 ? .1424 .0188"),
        *(".9069 .2402 .0322 .0645 .1425 .0444", ".9077 .2402 .0322 ? .1413 .0277"),
        *(".9074 .2401 .0321 ? .1425 .0456", ".9055 .2403 .0323 .0633 .1410 .0204"),
        *(".9078 .2409 .0329 .0666 .1431 .0483", ".9068 .2409 .0329 .0664 .1416 .0252"),
        *(".9034 .2429 .0349 .0778 .1431 .0481", ".9030 .2432 .0352 .0766 .1414 .0213"),
    ),
}
# Table 2, which has networks that learnt from one label: prior and posterior EL.
TABLE_2: dict[Row, str] = {
    **{("raw", "none", True): ".0435 .0354", ("raw", "ts", True): ".0430 .0352"},
    **{("mcdo", "none", False): ".0437 .0440", ("mcdo", "ts", False): ".0435 .0438"},
    **{("tta", "none", False): ".0378 .0382", ("tta", "ts", False): ".0379 .0383"},
}


def paper_value(labels: str, row: Row, metric: str) -> str:
    """Return what the paper prints for "1" label or "all", or nothing where it has no such number.

    Its posteriors of ensembles are those of the released weights, a sum.

    >>> paper_value("1", ("raw", "ts", True), "posterior")
    '.0352'
    >>> paper_value("all", ("tta", "ts", False), "epistemic_loss")
    '.0321'
    """
    after = "posterior" if row[0] == "raw" else "posterior_sum"
    if metric in ("prior", after):
        text = TABLE_2.get(row, "") if labels == "1" else ""
        return text.split()[metric == after] if text else ""
    if metric not in COLUMNS:
        return ""
    cell = TABLE_6[labels][ROWS.index(row)].split()[COLUMNS.index(metric)]
    return "" if cell == "?" else cell
