"""Files of adapters that are missing, cut off or another model's are named before vLLM sees them."""

from types import SimpleNamespace

import pytest
from tests import lora_files

from argosy_runtime.backends.vllm.opening.adapter_files import check_adapter
from argosy_runtime.errors import ErrorKind, ServingError

BASE = SimpleNamespace(hidden_size=64, num_hidden_layers=2)
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
        check_adapter("m", "a", folder, base)
    return refused.value


def test_an_adapter_of_the_model_fits(tmp_path):
    vision = {"base_model.model.vision_tower.vision_model.encoder.layers.9.self_attn.q_proj.lora_A.weight": (8, 5)}
    check_adapter("m", "a", lora_files.write(tmp_path / "a", shapes={**matrices(), **vision}), BASE)
    check_adapter("m", "a", lora_files.write(tmp_path / "b", shapes=matrices(48, 9)), None)
    (tmp_path / "a/adapter_model.safetensors").rename(tmp_path / "a/adapter_model.bin")
    check_adapter("m", "a", tmp_path / "a", BASE)


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
