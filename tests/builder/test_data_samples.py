"""Data files as people write them become samples that fit the inputs; what does not fit is named."""

from pathlib import Path

import numpy as np
import orjson
import pytest

from argosy_agent.contract.builds import BuildFailure, TensorSpec
from argosy_builder.contract import BuildError
from argosy_builder.data import Purpose, Samples, read_samples

X = TensorSpec("x", "TYPE_FP32", (3,))
IDS = TensorSpec("ids", "TYPE_INT64", (-1,))


def read(folder: Path, *inputs: TensorSpec, count: int = 0) -> Samples:
    return read_samples(folder, inputs, count, Purpose.ACCURACY)


def lines(folder: Path, *objects: object, name: str = "data.jsonl") -> None:
    (folder / name).write_bytes(b"\n".join(map(orjson.dumps, objects)) + b"\n\n")


def test_an_array_of_npz_is_a_tensor_and_labels_stand_alongside(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.arange(6.0).reshape(2, 3), labels=np.array([1, 0]))
    data = read(tmp_path, X)
    assert [row["x"].tolist() for row in data.rows] == [[0, 1, 2], [3, 4, 5]]
    assert data.rows[0]["x"].dtype == np.float32
    assert data.labels is not None
    assert data.labels.tolist() == [1, 0]
    assert data.digest.startswith("sha256:")


def test_a_bare_array_is_the_only_input(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((4, 3), np.float32))
    assert len(read(tmp_path, X)) == 4


def test_lines_may_differ_in_length_where_a_dimension_is_open(tmp_path: Path) -> None:
    lines(tmp_path, {"ids": [1, 2]}, {"ids": [3]})
    assert [row["ids"].tolist() for row in read(tmp_path, IDS).rows] == [[1, 2], [3]]


def test_files_follow_one_another_by_name_and_count_cuts(tmp_path: Path) -> None:
    lines(tmp_path, {"ids": [3]}, name="b.jsonl")
    lines(tmp_path, {"ids": [1]}, {"ids": [2]}, name="a.jsonl")
    assert [row["ids"][0] for row in read(tmp_path, IDS, count=2).rows] == [1, 2]


def test_texts_need_no_tensors(tmp_path: Path) -> None:
    lines(tmp_path, {"text": "one"}, {"text": "two"})
    data = read(tmp_path, IDS)
    assert (list(data.texts), len(data), data.rows) == (["one", "two"], 2, ())


def test_without_declared_inputs_every_column_is_one(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", a=np.ones((2, 1)), b=np.zeros((2, 5)), labels=np.zeros(2))
    assert [sorted(row) for row in read(tmp_path).rows] == [["a", "b"]] * 2


def test_small_integers_of_json_fit_a_narrow_type(tmp_path: Path) -> None:
    narrow = TensorSpec("ids", "TYPE_UINT8", (1,))
    lines(tmp_path, {"ids": [255]})
    assert read(tmp_path, narrow).rows[0]["ids"].dtype == np.uint8
    lines(tmp_path, {"ids": [256]})
    with pytest.raises(BuildError, match=r"ids\[0\] is int64, which is no TYPE_UINT8"):
        read(tmp_path, narrow)


def _truncated(folder: Path) -> None:
    np.savez(folder / "a.npz", x=np.ones((50, 3)))
    content = (folder / "a.npz").read_bytes()
    (folder / "a.npz").write_bytes(content[: len(content) // 2])


WRONG = {
    "nothing": (lambda folder: None, "holds no .npz, .npy or .jsonl file, but nothing"),
    "another kind": (lambda folder: (folder / "a.csv").write_text("1"), "but a.csv"),
    "cut off": (_truncated, "a.npz: is no whole .npz file"),
    "objects": (lambda folder: np.savez(folder / "a.npz", x=np.array([{}], object)), "without Python objects"),
    "another name": (lambda folder: np.savez(folder / "a.npz", y=np.ones((1, 3))), "has no x; it has y"),
    "another shape": (lambda folder: np.savez(folder / "a.npz", x=np.ones((1, 4))), r"the shape \[4\], and dims are"),
    "no samples axis": (lambda folder: np.savez(folder / "a.npz", x=np.float32(1)), "the first axis must count"),
    "not a number": (lambda folder: np.savez(folder / "a.npz", x=np.full((1, 3), np.nan)), "no finite number"),
    "text for numbers": (lambda folder: lines(folder, {"x": ["a", "b", "c"]}), "which is no TYPE_FP32"),
    "ragged": (lambda folder: lines(folder, {"x": [1, [2], 3]}), "cannot be read"),
    "no JSON": (lambda folder: (folder / "a.jsonl").write_text('{"x": [1,2,3]}\n{'), "line 2 is no JSON"),
    "no object": (lambda folder: lines(folder, [1, 2]), "line 1 is no object"),
    "other keys": (lambda folder: lines(folder, {"x": [1, 2, 3]}, {"y": 1}), "line 2 has y, the lines before x"),
    "empty": (lambda folder: (folder / "a.jsonl").write_text(""), "has no x; it has nothing"),
    "too few labels": (
        lambda folder: np.savez(folder / "a.npz", x=np.ones((2, 3)), labels=np.ones(1)),
        "not as many samples of each: 2 of x, 1 of labels",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_do_is_named(tmp_path: Path, name: str) -> None:
    make, message = WRONG[name]
    make(tmp_path)
    with pytest.raises(BuildError, match=message) as caught:
        read(tmp_path, X)
    assert caught.value.failure is BuildFailure.ACCURACY_DATA_INVALID
    assert caught.value.message.startswith("spec.engine.accuracy.dataUri: ")


def test_what_it_is_for_decides_the_field(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"spec\.engine\.calibration\.dataUri") as caught:
        read_samples(tmp_path, (X,), 0, Purpose.CALIBRATION)
    assert caught.value.failure is BuildFailure.CALIBRATION_INVALID


def test_labels_in_one_file_alone_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.ones((1, 3)), labels=np.ones(1))
    np.savez(tmp_path / "b.npz", x=np.ones((1, 3)))
    with pytest.raises(BuildError, match="some files have labels and some have none"):
        read(tmp_path, X)
