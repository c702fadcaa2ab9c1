from pathlib import Path

import pytest
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.repository.folders.layout import INITIAL_STATE_FOLDER, WARMUP_FOLDER, inside, read_folder
from argosy_runtime.repository.preparing import label_lines
from argosy_runtime.repository.preparing.labels import read_labels


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("", []),
        ("cat", ["cat"]),
        ("cat\ndog\n", ["cat", "dog"]),
        ("cat\r\ndog\r\n", ["cat", "dog"]),
        ("cat\n\ndog", ["cat", "", "dog"]),
        ("a\u2028b\nc\x0cd\ne\x85f\ng\rh", ["a\u2028b", "c\x0cd", "e\x85f", "g\rh"]),
    ],
)
def test_labels_end_at_newlines_alone(text: str, labels: list[str]) -> None:
    assert label_lines(text) == labels


@pytest.mark.parametrize("name", ["../m_labels/l.txt", "../../etc/passwd", "1/../../other.txt", "/etc/passwd"])
def test_a_label_file_outside_of_the_model(tmp_path: Path, name: str) -> None:
    (tmp_path / "m" / "1").mkdir(parents=True)
    config = ModelConfig(name="m")
    config.output.add(name="Y", label_filename=name)
    path = tmp_path / "m" / name
    text = f"label file path '{path}' for output 'Y' in model 'm' is outside model directory"
    with pytest.raises(ServingError) as caught:
        read_labels(read_folder(tmp_path / "m"), 1, config)
    assert (caught.value.kind, caught.value.message) == (ErrorKind.UNSUPPORTED, text)


def test_a_label_file_may_be_a_link_out_of_the_model(tmp_path: Path) -> None:
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "blob").write_text("cat\ndog\n")
    (tmp_path / "m" / "l.txt").symlink_to("../blob")
    config = ModelConfig(name="m")
    config.output.add(name="Y", label_filename="l.txt")
    assert read_labels(read_folder(tmp_path / "m"), 1, config) == {"Y": ["cat", "dog"]}


@pytest.mark.parametrize("folder", [WARMUP_FOLDER, INITIAL_STATE_FOLDER])
def test_files_that_a_configuration_names_may_be_links(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir()
    (tmp_path / "blob").write_bytes(b"x")
    (tmp_path / folder / "data").symlink_to("../blob")
    assert inside(tmp_path / folder, "data").read_bytes() == b"x"
    for outside in ("../blob", str(tmp_path / "blob")):
        with pytest.raises(ServingError, match="must be a path inside the model's folder"):
            inside(tmp_path / folder, outside)
