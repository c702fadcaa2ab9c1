"""Files of adapters that are missing, cut off or another model's are named before an engine sees them."""

import pytest
from tests import lora_files

from argosy_runtime.backends.adapters.files import BaseModel, adapter_rank, fits, largest_rank
from argosy_runtime.errors import ErrorKind, ServingError

BASE = BaseModel("m", hidden=64, layers=2, unchecked=("adapter_model.bin",))
PREFIX = "base_model.model.model.layers"


def matrices(hidden: int = 64, layers: int = 2) -> dict[str, tuple[int, int]]:
    """Return the shapes of an adapter of a model with grouped keys, whose other sizes differ from the hidden one."""
    sizes = {"q_proj": (hidden, 96), "k_proj": (hidden, 32), "o_proj": (96, hidden)}
    return {
        f"{PREFIX}.{layer}.self_attn.{module}.lora_{side}.weight": (8, read) if side == "A" else (written, 8)
        for layer in range(layers)
        for module, (read, written) in sizes.items()
        for side in "AB"
    }


def refusal(folder, base=BASE) -> ServingError:
    with pytest.raises(ServingError) as refused:
        adapter_rank(base, "a", folder)
    return refused.value


def test_an_adapter_of_the_model_fits(tmp_path):
    vision = {"base_model.model.vision_tower.vision_model.encoder.layers.9.self_attn.q_proj.lora_A.weight": (8, 5)}
    assert adapter_rank(BASE, "a", lora_files.write(tmp_path / "a", 16, {**matrices(), **vision})) == 16
    assert adapter_rank(BaseModel("m"), "b", lora_files.write(tmp_path / "b", shapes=matrices(48, 9))) == 8
    (tmp_path / "a/adapter_model.safetensors").rename(tmp_path / "a/adapter_model.bin")
    assert adapter_rank(BASE, "a", tmp_path / "a") == 16


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (matrices(hidden=48), "layers.0.self_attn.q_proj.lora_A.weight' is of hidden size 48, and the model's is 64"),
        (matrices(layers=3), "layers.2.self_attn.q_proj.lora_A.weight' is of layer 2, and the model has 2, from 0"),
        ({f"{PREFIX}.0.mlp.down_proj.lora_B.weight": (48, 8)}, "is of hidden size 48"),
    ],
)
def test_an_adapter_of_another_model_is_refused(tmp_path, shapes, message):
    error = refusal(lora_files.write(tmp_path / "a", shapes=shapes))
    assert error.kind is ErrorKind.INVALID_ARG
    assert "model 'm': adapter 'a' does not fit, it is another model's: " in error.message
    assert message in error.message


def test_a_file_that_is_cut_off_is_named(tmp_path):
    folder = lora_files.write(tmp_path / "a", shapes=matrices())
    path = folder / "adapter_model.safetensors"
    complete = path.read_bytes()
    for length in (len(complete) - 1, 100, 4, 0):
        path.write_bytes(complete[:length])
        error = refusal(folder)
        assert error.kind is ErrorKind.INVALID_ARG
        assert f"'{path}' is cut off or broken: it has {length} bytes" in error.message


@pytest.mark.parametrize("header", [b'{"a": ' + b"[" * 50_000, b'{"a": "\xff"}', b'{"a": 1}', b"[]"])
def test_a_header_that_cannot_be_read_is_named(tmp_path, header):
    folder = lora_files.write(tmp_path / "a")
    path = folder / "adapter_model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    error = refusal(folder)
    assert error.kind is ErrorKind.INVALID_ARG
    assert f"'{path}' is cut off or broken: its header cannot be read" in error.message


@pytest.mark.parametrize("name", ["adapter_model.safetensors", "adapter_config.json"])
def test_a_file_that_is_missing_is_named(tmp_path, name):
    folder = lora_files.write(tmp_path / "a")
    (folder / name).unlink()
    error = refusal(folder)
    assert error.kind is ErrorKind.UNAVAILABLE
    assert f"adapter 'a' has no '{folder / name}'" in error.message


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"r": null}', '{"r": "all"}', '{"r": ' + "[" * 50_000])
def test_settings_without_a_rank_are_named(tmp_path, text):
    folder = lora_files.write(tmp_path / "a")
    (folder / "adapter_config.json").write_text(text)
    error = refusal(folder)
    assert error.kind is ErrorKind.INVALID_ARG
    assert f"'{folder / 'adapter_config.json'}' cannot be read: it has no rank 'r'" in error.message


def test_the_largest_rank_is_that_of_those_that_can_be_read(tmp_path):
    folders = [lora_files.write(tmp_path / str(rank), rank) for rank in (8, 16)]
    assert largest_rank([*folders, tmp_path / "missing"]) == 16
    assert [fits(BASE, folder) for folder in [*folders, tmp_path / "missing"]] == [True, True, False]
    assert largest_rank([]) == 0
