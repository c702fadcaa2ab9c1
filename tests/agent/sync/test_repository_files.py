"""Files in a server's folder of a model: labels, data, and files under the names of the configuration."""

import shutil
from dataclasses import replace

import pytest
from tests.agent.sync.bench import Bench, text

from argosy_agent.contract import RenderedModel, VersionSource


async def test_files_that_stand_in_the_folder_are_not_fetched_again(bench: Bench) -> None:
    first = bench.source("a", "one")
    await bench.settle(bench.model("m", v1=first))
    shutil.rmtree(bench.root / "cache")
    (bench.root / "cache").mkdir()
    await bench.settle(bench.model("m", v1=first, v2=bench.source("b", "two")))
    assert bench.fake.loaded == {"m": {1: "one", 2: "two"}}
    assert len(list((bench.root / "cache").glob("file-*"))) == 1


async def test_labels_follow_the_newest_version_back(bench: Bench) -> None:
    def labelled(name: str, label: str) -> VersionSource:
        source = bench.source(name, name)
        (bench.root / "sources" / name / "labels.txt").write_text(label)
        return source

    def model(**versions: VersionSource) -> RenderedModel:
        made = bench.model("m", **versions)
        return replace(made, config_text=made.config_text + 'output { name: "Y" label_filename: "labels.txt" }\n')

    first = labelled("a", "cat")
    await bench.settle(model(v1=first))
    await bench.settle(model(v1=first, v2=labelled("b", "dog")))
    assert (bench.root / "server/repository/m/labels.txt").read_text() == "dog"
    await bench.settle(model(v1=first))
    assert (bench.root / "server/repository/m/labels.txt").read_text() == "cat"


async def test_labels_and_warmup_data_come_to_stand_alongside_the_versions(bench: Bench) -> None:
    source = bench.source("a", "one")
    folder = bench.root / "sources" / "a"
    (folder / "warmup").mkdir()
    (folder / "warmup" / "raw").write_text("data")
    (folder / "labels.txt").write_text("cat\ndog\n")
    config = text("m", 1) + 'output { name: "Y" label_filename: "labels.txt" }\n'
    await bench.settle(RenderedModel("m", config, {1: source}))
    assert bench.entries("m") == {"1", "config.pbtxt", "warmup", "labels.txt"}


async def test_a_lone_file_gets_the_name_that_its_backend_wants(bench: Bench) -> None:
    file = bench.root / "classifier-v7.onnx"
    file.write_text("onnx")
    model = bench.model("m", v1=VersionSource(file.as_uri(), "", "model.onnx"))
    await bench.settle(model)
    assert [path.name for path in (bench.root / "server/repository/m/1").iterdir()] == ["model.onnx"]


async def test_a_changed_file_name_takes_effect(bench: Bench) -> None:
    file = bench.root / "classifier-v7.onnx"
    file.write_text("onnx")
    for name in ("model.onnx", "net.onnx"):
        await bench.settle(bench.model("m", v1=VersionSource(file.as_uri(), "", name)))
        assert [path.name for path in (bench.root / "server/repository/m/1").iterdir()] == [name]


async def test_the_longest_name_that_kubernetes_has_is_served(bench: Bench) -> None:
    first, second = "n" * 253, "n" * 252 + "m"
    await bench.settle(
        bench.model(first, v1=bench.source("a", "one")), bench.model(second, v1=bench.source("b", "two"))
    )
    bench.agent = bench.new_agent()
    await bench.settle(bench.model(first, v1=bench.source("a", "one")))
    assert bench.fake.loaded == {first: {1: "one"}}


@pytest.mark.parametrize("name", ["/{root}/secret", "../../secret", "sub/../../../secret"])
async def test_labels_outside_of_the_models_files_are_not_placed(bench: Bench, name: str) -> None:
    (bench.root / "secret").write_text("hush")
    path = name.replace("/{root}", str(bench.root))
    config = text("m", 1) + f'output {{ name: "Y" label_filename: "{path}" }}\n'
    await bench.settle(RenderedModel("m", config, {1: bench.source("a", "one")}))
    placed = [path.name for path in (bench.root / "server/repository").rglob("*") if path.is_file()]
    assert sorted(placed) == ["config.pbtxt", "weights"]


async def test_a_label_file_in_a_subfolder_is_placed_as_it_is_named(bench: Bench) -> None:
    source = bench.source("a", "one")
    (bench.root / "sources" / "a" / "sub").mkdir()
    (bench.root / "sources" / "a" / "sub" / "labels.txt").write_text("cat")
    config = text("m", 1) + 'output { name: "Y" label_filename: "sub/labels.txt" }\n'
    await bench.settle(RenderedModel("m", config, {1: source}))
    assert (bench.root / "server/repository/m/sub/labels.txt").read_text() == "cat"
