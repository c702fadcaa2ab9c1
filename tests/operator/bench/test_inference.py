"""Batches as requests of the V2 protocol: sizes, types, and what is missing."""

import json

import numpy as np
import pytest

from argosy.bench.load.inference import TYPES, Input, Signature, batch_body


def test_a_batch_has_so_many_rows_of_every_input() -> None:
    signature = Signature((Input("X", "FP32", (2, 3)), Input("ids", "INT64", (-1,)), Input("t", "BYTES", (1,))), True)
    body = batch_body(signature, 4, {"ids": (5,)})
    header = json.loads(body.data[: body.header])
    assert [(one["name"], one["shape"]) for one in header["inputs"]] == [
        ("X", [4, 2, 3]),
        ("ids", [4, 5]),
        ("t", [4, 1]),
    ]
    sizes = [one["parameters"]["binary_data_size"] for one in header["inputs"]]
    assert sizes == [96, 160, 16]
    assert len(body.data) == body.header + sum(sizes)
    floats = np.frombuffer(body.data, "<f4", 24, body.header)
    assert ((floats >= 0) & (floats < 1)).all()
    assert np.ptp(floats) > 0
    assert not np.frombuffer(body.data, "<i8", 20, body.header + 96).any()


def test_a_model_without_batches_gets_one_row() -> None:
    body = batch_body(Signature((Input("X", "FP32", (2,)),), False), 1, {})
    assert json.loads(body.data[: body.header])["inputs"][0]["shape"] == [2]


@pytest.mark.parametrize("datatype", [*TYPES, "BF16", "BYTES"])
def test_every_type_has_its_bytes(datatype: str) -> None:
    body = batch_body(Signature((Input("X", datatype, (3,)),), True), 2, {})
    size = json.loads(body.data[: body.header])["inputs"][0]["parameters"]["binary_data_size"]
    one = 4 if datatype == "BYTES" else 2 if datatype == "BF16" else np.dtype(TYPES[datatype]).itemsize
    assert size == 6 * one


@pytest.mark.parametrize("shapes", [{}, {"X": (1,)}, {"X": (4, 5)}, {"X": (3, -1)}])
def test_sizes_that_are_missing_or_do_not_fit_are_named(shapes: dict[str, tuple[int, ...]]) -> None:
    with pytest.raises(ValueError, match=r"input X has the shape \[3, -1\]: say its sizes by --shape X="):
        batch_body(Signature((Input("X", "FP32", (3, -1)),), True), 1, shapes)
