"""A model's code completes its configuration, within what it may set."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.runtime.backends.python.sources import CONFIG, ECHO

from argosy_runtime.backends import python
from argosy_runtime.errors import ErrorKind, ServingError


def completed(model_folder: Callable[[str], Any], body: str, pbtxt: str = 'name: "m" backend: "python"') -> Any:
    folder = model_folder(pbtxt)
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    (folder.version_dir / "model.py").write_text(
        "class TritonPythonModel:\n    @staticmethod\n    def auto_complete_config(c):\n" + lines
    )
    return python.complete_config(folder.model_dir, folder.version_dir, folder.config)


def test_a_model_completes_its_configuration(model_folder: Callable[[str], Any]) -> None:
    config = completed(
        model_folder,
        """c.set_max_batch_size(4)
c.set_dynamic_batching()
c.add_input({"name": "A", "data_type": "TYPE_FP32", "dims": [3, -1], "optional": True})
c.add_output({"name": "B", "data_type": "TYPE_STRING", "dims": [1]})
c.set_model_transaction_policy({"decoupled": True})
return c""",
    )
    assert (config.max_batch_size, config.HasField("dynamic_batching")) == (4, True)
    assert (config.input[0].name, list(config.input[0].dims), config.input[0].optional) == (
        "A",
        [3, -1],
        True,
    )
    assert (config.output[0].name, config.output[0].data_type) == ("B", 13)
    assert config.model_transaction_policy.decoupled
    assert config.backend == "python"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("set_max_batch_size(2)", "configuration specified max_batch_size 8, but in auto-complete-config"),
        (
            "add_input({'name': 'IN', 'data_type': 'TYPE_FP32', 'dims': [2]})",
            "the model expects dims \\[2\\]",
        ),
        (
            "add_input({'name': 'IN', 'data_type': 'TYPE_INT8', 'dims': [-1]})",
            "expects datatype TYPE_FP32 for input 'IN', model provides TYPE_INT8",
        ),
        ("add_output({'name': 'X', 'dims': [1]})", "output 'X' in .* is missing 'data_type' property."),
        ("add_output({'dims': [1]})", "output in auto-complete-config .* is missing 'name' property."),
        (
            "add_input({'name': 'X', 'shape': 1})",
            "property other than 'name', 'data_type', 'dims' and 'optional'.",
        ),
        ("set_model_transaction_policy({'x': 1})", "contains property other than 'decoupled'."),
    ],
)
def test_a_contradiction_is_named(model_folder: Callable[[str], Any], call: str, expected: str) -> None:
    with pytest.raises(ServingError, match=expected) as raised:
        completed(model_folder, f"c.{call}\nreturn c", CONFIG)
    assert raised.value.kind is ErrorKind.INTERNAL


def test_an_unknown_data_type_is_named_without_frames(model_folder: Callable[[str], Any]) -> None:
    with pytest.raises(ServingError) as raised:
        completed(model_folder, "c.add_input({'name': 'X', 'data_type': 'TYPE_NO', 'dims': [1]})\nreturn c", CONFIG)
    assert raised.value.kind is ErrorKind.NOT_FOUND
    start = "model configuration is not provided for model 'm'; failed to parse model configuration JSON: "
    assert raised.value.message.startswith(start)
    assert "TYPE_NO" in raised.value.message
    assert "At:" not in raised.value.message


def test_auto_complete_must_return_the_configuration(model_folder: Callable[[str], Any]) -> None:
    with pytest.raises(ServingError, match=r"must return a valid pb\.ModelConfig object\."):
        completed(model_folder, "return None")


def test_a_model_without_auto_complete_keeps_its_configuration(model_folder: Callable[[str], Any]) -> None:
    folder = model_folder(CONFIG)
    (folder.version_dir / "model.py").write_text(ECHO)
    assert python.complete_config(folder.model_dir, folder.version_dir, folder.config) == folder.config
