"""A storageUri that names a whole model folder of Triton's."""

from dataclasses import replace
from pathlib import Path

import pytest
from google.protobuf import text_format
from tests.agent.sync.bench import Bench
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_agent.contract import RenderedModel, VersionSource
from argosy_agent.folder.writing import write_model

CONFIG = """name: "other" platform: "onnxruntime_onnx" max_batch_size: 8 version_policy { all {} }
input { name: "X" data_type: TYPE_FP32 dims: 4 }
output { name: "Y" data_type: TYPE_FP32 dims: 2 label_filename: "labels.txt" }
instance_group { count: 7 kind: KIND_GPU gpus: [5] } parameters { key: "A" value { string_value: "file" } }
parameters { key: "B" value { string_value: "file" } } dynamic_batching { max_queue_delay_microseconds: 50 }
"""
RENDERED = """name: "m" backend: "onnxruntime" version_policy { specific { versions: 1 } }
instance_group { kind: KIND_CPU }
parameters { key: "A" value { string_value: "manifest" } }
"""


def triton(root: Path, *versions: int, config: str = CONFIG) -> VersionSource:
    """Write a model folder as Triton has it."""
    for version in versions:
        (root / str(version)).mkdir(parents=True)
        (root / str(version) / "weights").write_text(f"v{version}")
    (root / "config.pbtxt").write_text(config)
    (root / "labels.txt").write_text("cat\ndog\n")
    (root / "env.tar.gz").write_text("packages")
    (root / "warmup").mkdir()
    (root / "warmup" / "raw").write_text("data")
    return VersionSource(root.as_uri())


def served(bench: Bench) -> ModelConfig:
    """Return the configuration that the server reads."""
    return text_format.Parse((bench.root / "server/repository/m/config.pbtxt").read_text(), ModelConfig())


async def test_a_model_folder_of_tritons_is_served(bench: Bench) -> None:
    source = triton(bench.root / "theirs", 1)
    await bench.settle(RenderedModel("m", RENDERED, {1: source}))
    assert (bench.root / "server/repository/m/1/weights").read_text() == "v1"
    assert bench.entries("m") == {"1", "config.pbtxt", "labels.txt", "env.tar.gz", "warmup"}


async def test_its_values_are_defaults_and_the_plan_decides_what_is_its_own(bench: Bench) -> None:
    await bench.settle(RenderedModel("m", RENDERED, {1: triton(bench.root / "theirs", 1)}))
    config = served(bench)
    assert (config.name, config.backend, config.platform) == ("m", "onnxruntime", "")
    assert (config.max_batch_size, config.dynamic_batching.max_queue_delay_microseconds) == (8, 50)
    assert [group.kind for group in config.instance_group] == [config.instance_group[0].KIND_CPU]
    assert list(config.version_policy.specific.versions) == [1]
    assert {key: value.string_value for key, value in config.parameters.items()} == {"A": "manifest", "B": "file"}
    assert (config.input[0].name, config.output[0].label_filename) == ("X", "labels.txt")


@pytest.mark.parametrize(("rendered", "size"), [("max_batch_size: 0\n", 0), ("max_batch_size: 4\n", 4), ("", 8)])
async def test_the_manifests_batch_size_goes_first(bench: Bench, rendered: str, size: int) -> None:
    await bench.settle(RenderedModel("m", RENDERED + rendered, {1: triton(bench.root / "theirs", 1)}))
    assert served(bench).max_batch_size == size


async def test_a_changed_manifest_keeps_the_defaults_when_the_copy_is_gone(bench: Bench) -> None:
    source = triton(bench.root / "theirs", 1)
    await bench.settle(RenderedModel("m", RENDERED, {1: source}))
    for path in sorted((bench.root / "cache").glob("file-*/config.pbtxt")):
        path.unlink()
    await bench.settle(RenderedModel("m", RENDERED + 'default_model_filename: "weights"\n', {1: source}))
    config = served(bench)
    assert (config.default_model_filename, config.max_batch_size) == ("weights", 8)


@pytest.mark.parametrize(("there", "declared", "content"), [((1, 2), 2, "v2"), ((1, 2), 1, "v1"), ((1,), 7, "v1")])
def test_the_folder_of_the_declared_version_is_taken_or_the_only_one(
    tmp_path: Path, there: tuple[int, ...], declared: int, content: str
) -> None:
    source = triton(tmp_path / "theirs", *there)
    write_model(RenderedModel("m", RENDERED, {declared: source}), {declared: tmp_path / "theirs"}, tmp_path / "m")
    assert (tmp_path / "m" / str(declared) / "weights").read_text() == content


def failing(path: Path, source: VersionSource, version: int = 1) -> str:
    """Return why it cannot be placed."""
    with pytest.raises(Exception, match="theirs") as raised:
        write_model(RenderedModel("m", RENDERED, {version: source}), {version: path / "theirs"}, path / "m")
    return str(raised.value)


def test_what_cannot_be_chosen_names_what_is_there(tmp_path: Path) -> None:
    message = failing(tmp_path, triton(tmp_path / "theirs", 1, 2), version=3)
    assert "holds the versions 1, 2 of a model and none that is 3" in message
    assert f"such as file://{tmp_path}/theirs/2" in message


def test_a_repository_of_models_is_refused_by_what_to_name(tmp_path: Path) -> None:
    triton(tmp_path / "theirs" / "add", 1)
    triton(tmp_path / "theirs" / "sub", 1)
    message = failing(tmp_path, VersionSource((tmp_path / "theirs").as_uri()))
    assert f"is a repository of the models add, sub: name one of them, such as file://{tmp_path}/theirs/add" in message


def test_an_ensemble_of_tritons_and_a_broken_configuration_are_refused(tmp_path: Path) -> None:
    config = 'ensemble_scheduling { step { model_name: "a" model_version: -1 } }'
    assert "declare an Ensemble for it" in failing(tmp_path, triton(tmp_path / "theirs", 1, config=config))
    (tmp_path / "theirs" / "config.pbtxt").write_text("nam: 1")
    (tmp_path / "m").rename(tmp_path / "former")
    message = failing(tmp_path, VersionSource((tmp_path / "theirs").as_uri()))
    assert "config.pbtxt is no model's configuration: 1:1" in message


def test_numbered_folders_of_a_models_own_stay_in_its_version(tmp_path: Path) -> None:
    (tmp_path / "theirs" / "1").mkdir(parents=True)
    (tmp_path / "theirs" / "1" / "part").write_text("x")
    (tmp_path / "theirs" / "model.py").write_text("y")
    source = VersionSource((tmp_path / "theirs").as_uri())
    write_model(RenderedModel("m", RENDERED, {1: source}), {1: tmp_path / "theirs"}, tmp_path / "m")
    assert (tmp_path / "m" / "1" / "1" / "part").read_text() == "x"


async def test_texts_are_written_where_the_files_have_none_of_that_name(bench: Bench) -> None:
    texts = {"model.json": '{"model": "/m/${version}"}'}
    bare, own = bench.source("a", "one"), bench.source("b", "two")
    (bench.root / "sources/b/model.json").write_text("{}")
    await bench.settle(replace(bench.model("m", v1=bare, v2=own), texts=texts))
    folder = bench.root / "server/repository/m"
    assert (folder / "1/model.json").read_text() == '{"model": "/m/1"}'
    assert (folder / "2/model.json").read_text() == "{}"
    await bench.settle(replace(bench.model("m", v1=bare, v2=own), texts={"model.json": "other"}))
    assert (folder / "1/model.json").read_text() == "other"
    assert not (bench.root / "sources/a/model.json").exists()
