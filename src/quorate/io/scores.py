"""What a table may hold beside probabilities: logits, and features of the cases."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.errors import InvalidInputError
from quorate.io.npz import is_npz
from quorate.io.ratings import find_id_column
from quorate.io.sources import existing_file, listed, open_table
from quorate.io.tables import PredictionTable
from quorate.io.values import (
    as_class_codes,
    as_ids,
    as_numbers,
    labels_of_codes,
    refuse_repeats,
)

__all__ = ["read_features", "read_logits_table"]

Array = NDArray[Any]
