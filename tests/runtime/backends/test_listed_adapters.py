"""Adapters that a model lists: in its parameter, and in a file of its version."""

import pytest
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.parameters import declared_adapters
from argosy_runtime.errors import ErrorKind, ServingError


def config(adapters: str = "") -> ModelConfig:
    made = ModelConfig(name="llm")
    if adapters:
        made.parameters["adapters"].string_value = adapters
    return made


def test_they_are_in_a_file_and_in_a_parameter(tmp_path):
    (tmp_path / "multi_lora.json").write_text('{"a": "/x/a", "b": "b"}')
    own = config('[{"name": "b", "path": "/y/b", "alias": "x", "weight": 1}, {"name": "c", "path": "c"}]')
    listed = [(adapter.name, adapter.path, adapter.alias) for adapter in declared_adapters(own, tmp_path)]
    assert listed == [("a", "/x/a", None), ("b", "/y/b", "x"), ("c", f"{tmp_path}/c", None)]
    assert declared_adapters(config(), tmp_path / "empty") == ()


A = '{"name": "a", "path": "a"%s}'


@pytest.mark.parametrize(
    ("file", "own", "message"),
    [
        ('{"a": 5}', "", "'multi_lora.json' is not a JSON object of adapters' paths"),
        ("[", "", "'multi_lora.json' is not a JSON object"),
        ("{}", "{", "parameter 'adapters' is not a JSON list"),
        ("{}", '["a"]', "parameter 'adapters' is not a JSON list"),
        ("{}", '[{"path": "a"}]', "required field `name`"),
        ("{}", "[" + A % ', "size": 1' + "]", "unknown field `size`"),
        ("{}", f"[{A % ''}, {A % ''}]", "there are two adapters 'a'; rename one"),
        ("{}", '[{"name": "llm", "path": "a"}]', "'llm' cannot be the name of an adapter"),
        ("{}", '[{"name": "../a", "path": "a"}]', "'../a' cannot be the name of an adapter"),
        ("{}", "[" + A % ', "alias": "a"' + "]", "alias 'a' is the name of an adapter"),
        ('{"b": "b"}', "[" + A % ', "alias": "b"' + "]", "alias 'b' is the name of an adapter"),
        ("{}", "[" + A % ', "weight": -1' + "]", "the weight of adapter 'a' is -1"),
        ("{}", "[" + A % ', "alias": "x", "weight": 0' + "]", "all adapters of alias 'x' have weight 0; raise one"),
    ],
)
def test_a_list_that_cannot_be_read_says_why(tmp_path, file, own, message):
    (tmp_path / "multi_lora.json").write_text(file)
    with pytest.raises(ServingError) as refused:
        declared_adapters(config(own), tmp_path)
    assert refused.value.kind is ErrorKind.INVALID_ARG
    assert message in refused.value.message
