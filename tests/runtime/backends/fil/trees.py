"""Small models of XGBoost, LightGBM and scikit-learn with what they predict by themselves."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import treelite
import xgboost
from sklearn.ensemble import RandomForestClassifier

CONFIG = """
name: "m" backend: "fil" max_batch_size: 64
input [ { name: "input__0" data_type: TYPE_FP32 dims: [ 5 ] } ]
output [ { name: "output__0" data_type: TYPE_FP32 dims: [ %s ] } ]
"""
FEATURES = 5


@dataclass(frozen=True)
class Trained:
    """A way to write a model's file, and its values for the rows of `ROWS`."""

    save: Callable[[Path], Any]
    values: np.ndarray


def _rows() -> np.ndarray:
    rows = np.random.default_rng(7).normal(size=(200, FEATURES)).astype(np.float32)
    rows[::9, 2] = np.nan
    return rows


ROWS = _rows()
_SUM = np.nan_to_num(ROWS).sum(axis=1)
_LABELS = {1: _SUM, 2: (_SUM > 0).astype(int), 3: np.digitize(_SUM, [-1, 1])}


@cache
def xgb(objective: str, classes: int) -> Trained:
    """Return boosted trees of XGBoost; `classes` is 1 for values."""
    options = {"objective": objective, "max_depth": 3, "seed": 1, "nthread": 1}
    options |= {"num_class": classes} if classes > 2 else {}
    data = xgboost.DMatrix(ROWS, _LABELS[classes])
    booster = xgboost.train(options, data, 6)
    return Trained(booster.save_model, booster.predict(data))


@cache
def lgb(objective: str, classes: int) -> Trained:
    """Return boosted trees of LightGBM, which computes in 64 bits."""
    options = {"objective": objective, "num_leaves": 7, "verbose": -1, "seed": 1, "num_threads": 1}
    options |= {"num_class": classes} if classes > 2 else {}
    booster = lightgbm.train(options, lightgbm.Dataset(ROWS, _LABELS[classes]), 6)
    return Trained(booster.save_model, booster.predict(ROWS))


@cache
def forest() -> Trained:
    """Return a random forest of scikit-learn, as a checkpoint of Treelite."""
    trees = RandomForestClassifier(8, max_depth=4, random_state=1).fit(np.nan_to_num(ROWS), _LABELS[3])
    model = treelite.sklearn.import_model(trees)
    return Trained(lambda path: model.serialize(path), trees.predict_proba(np.nan_to_num(ROWS)))


def parameters(**values: str) -> str:
    """Return parameters of a configuration."""
    return "".join(
        f' parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}' for name, value in values.items()
    )


def change_first(checkpoint: Path, field: str, value: int) -> None:
    """Set the first number of a field of a checkpoint, of its header or of its first tree."""
    model = treelite.Model.deserialize(str(checkpoint))
    of_header = field in ("class_id", "target_id", "num_class")
    accessor = model.get_header_accessor() if of_header else model.get_tree_accessor(0)
    numbers = accessor.get_field(field).copy()
    numbers[0] = value
    accessor.set_field(field, numbers)
    model.serialize(str(checkpoint))


def move_leaves(checkpoint: Path) -> None:
    """Have the leaves of a checkpoint's first tree name values far outside of it, where a process may not read."""
    model = treelite.Model.deserialize(str(checkpoint))
    tree = model.get_tree_accessor(0)
    for field in ("leaf_vector_begin", "leaf_vector_end"):
        tree.set_field(field, tree.get_field(field) + np.uint64(2**40))
    model.serialize(str(checkpoint))
