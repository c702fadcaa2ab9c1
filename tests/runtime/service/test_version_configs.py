"""Versions with configurations of their own serve next to each other, and each changes alone."""

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest
from tests.runtime.service.conftest import CONFIG, MODEL, ask, infer, settled, states, value
from tests.waiting import until

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.repository.options import ControlMode

ALL = "version_policy { all {} }\n"
UNBATCHED = CONFIG.replace("max_batch_size: 8", "max_batch_size: 0").replace("dynamic_batching { }", "")
ENSEMBLE = """
platform: "ensemble"
max_batch_size: 8
input [ { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] } ]
ensemble_scheduling { step [
  { model_name: "double" model_version: %d input_map { key: "X" value: "X" } output_map { key: "Y" value: "m" } },
  { model_name: "add" model_version: %d input_map { key: "X" value: "m" } output_map { key: "Y" value: "Y" } } ] }
"""
LOADS = "open({path!r}, 'a').write(args['model_version'] + '\\n')"


def source(execute: str, initialize: str = "pass") -> str:
    """Return a model's code."""
    return MODEL.format(initialize=" " * 8 + initialize, execute=" " * 12 + execute)


def own(repository, name: str, version: int, text: str) -> None:
    """Give a version a configuration of its own."""
    (repository.path / name / str(version) / "argosy.pbtxt").write_text(text)


def two_versions(repository, first: str, second: str, loads: Path | None = None) -> None:
    """Write a model `m`: version 1 doubles and is served by `first`, version 2 triples and has `second` of its own."""
    initialize = LOADS.format(path=str(loads)) if loads is not None else "pass"
    files = {"1/model.py": source("y = x * 2", initialize), "2/model.py": source("y = x * 3", initialize)}
    repository.write("m", {**files, "2/argosy.pbtxt": second}, first)


def steps(repository) -> None:
    """Write the models `double` and `add`, of two versions each: times 2 or 20, plus 1 or 10."""
    for name, code in (("double", "y = x * {}"), ("add", "y = x + {}")):
        values = {"double": (2, 20), "add": (1, 10)}[name]
        files = {f"{version}/model.py": source(code.format(n)) for version, n in enumerate(values, 1)}
        repository.write(name, files, ALL + CONFIG)


def two_pipelines(repository) -> None:
    """Write the ensemble `e`, whose versions pin the versions of its steps that have their number."""
    steps(repository)
    repository.write("e", {"1/.keep": "", "2/argosy.pbtxt": ENSEMBLE % (2, 2)}, ALL + ENSEMBLE % (1, 1))


@pytest.fixture
def loads(tmp_path) -> Path:
    """Return the file in which the versions of `m` log their loads."""
    path = tmp_path / "loads"
    path.touch()
    return path


async def test_two_versions_differ_in_batching_and_instances(repository, serve):
    two_versions(repository, ALL + CONFIG, UNBATCHED + "instance_group { count: 2 kind: KIND_CPU }")
    plane = await serve()
    await plane.load("m", None, {})
    first, second = plane.registry.find("m", "1"), plane.registry.find("m", "2")
    assert (first.config.max_batch_size, first.instances) == (8, 1)
    assert (second.config.max_batch_size, second.instances) == (0, 2)
    assert await value(plane, "m", 1, version="1") == 2.0
    request = ask("m", 1, version="2")
    request.inputs["X"] = request.inputs["X"].reshaped((1,))
    assert float((await infer(plane, request)).outputs[0].array[0]) == 3.0
    metadata = plane.model_metadata("m", "2")
    assert list(metadata.inputs[0].shape) == [1]
    assert list(plane.model_metadata("m", "1").inputs[0].shape) == [-1, 1]


async def test_two_versions_differ_in_their_inputs(repository, serve):
    renamed = CONFIG.replace('"X"', '"Z"')
    two_versions(repository, ALL + CONFIG, renamed)
    (repository.path / "m" / "2" / "model.py").write_text(source("y = x * 3").replace('"X"', '"Z"'))
    plane = await serve()
    await plane.load("m", None, {})
    assert await value(plane, "m", 1, version="1") == 2.0
    with pytest.raises(ServingError, match="X"):
        await value(plane, "m", 1, version="2")
    request = ask("m", 1, version="2")
    tensor = request.inputs.pop("X")
    tensor.name = "Z"
    request.inputs["Z"] = tensor
    assert float((await infer(plane, request)).outputs[0].array[0, 0]) == 3.0


async def test_a_changed_configuration_loads_its_version_alone(repository, serve, loads):
    two_versions(repository, ALL + CONFIG, CONFIG, loads)
    plane = await serve()
    await plane.load("m", None, {})
    unchanged, replaced = plane.registry.find("m", "1"), plane.registry.find("m", "2")
    own(repository, "m", 2, CONFIG + 'parameters { key: "k" value { string_value: "1" } }')
    await plane.load("m", None, {})
    assert plane.registry.find("m", "1") is unchanged
    assert plane.registry.find("m", "2") is not replaced
    assert sorted(loads.read_text().split()) == ["1", "2", "2"]


async def test_instances_of_one_version_change(repository, serve, loads):
    two_versions(repository, ALL + CONFIG, CONFIG, loads)
    plane = await serve()
    await plane.load("m", None, {})
    before = [plane.registry.find("m", version) for version in ("1", "2")]
    own(repository, "m", 2, CONFIG + "instance_group { count: 2 kind: KIND_CPU }")
    await plane.load("m", None, {})
    assert [plane.registry.find("m", version) for version in ("1", "2")] == before
    assert [served.instances for served in before] == [1, 2]
    assert sorted(loads.read_text().split()) == ["1", "2", "2"]


async def test_the_models_configuration_decides_which_versions_are_served(repository, serve):
    two_versions(repository, CONFIG, CONFIG + "version_policy { specific { versions: [ 1 ] } }")
    plane = await serve()
    await plane.load("m", None, {})
    assert await states(plane) == {"m:2": "READY"}
    assert plane.registry.find("m", "2").config.version_policy.latest.num_versions == 1


async def test_where_every_version_has_its_own_the_models_need_not_be_complete(repository, serve):
    two_versions(repository, ALL, CONFIG)
    own(repository, "m", 1, CONFIG)
    plane = await serve()
    await plane.load("m", None, {})
    assert [await value(plane, "m", 1, version=version) for version in ("1", "2")] == [2.0, 3.0]


async def test_two_versions_of_an_ensemble_pin_versions_of_their_steps(repository, serve):
    two_pipelines(repository)
    plane = await serve()
    await plane.load("e", None, {})
    assert await states(plane) == {
        f"{name}:{version}": "READY" for name in ("add", "double", "e") for version in (1, 2)
    }
    assert await value(plane, "e", 3, version="1") == 7.0
    assert await value(plane, "e", 3, version="2") == 70.0


async def test_a_version_of_an_ensemble_follows_the_steps_that_it_pins(repository, serve):
    two_pipelines(repository)
    plane = await serve()
    await plane.load("e", None, {})
    first = plane.registry.find("e", "1")
    (repository.path / "add" / "2" / "model.py").write_text(source("y = x + 100"))
    await plane.load("add", None, {})
    assert await value(plane, "e", 3, version="1") == 7.0
    assert await value(plane, "e", 3, version="2") == 160.0
    own(repository, "add", 2, ENSEMBLE)
    (repository.path / "add" / "config.pbtxt").write_text("version_policy { specific { versions: [ 1 ] } }" + CONFIG)
    await plane.load("add", None, {})
    assert (await states(plane))["e:1"] == "READY"
    assert (await states(plane))["e:2"] == "UNAVAILABLE"
    assert plane.registry.find("e", "1").statistics is first.statistics
    assert await value(plane, "e", 3, version="1") == 7.0


async def test_no_request_is_lost_while_one_revision_of_an_ensemble_leaves(repository, serve):
    two_pipelines(repository)
    plane = await serve(unload_grace=20)
    await plane.load("e", None, {})
    stop, answers = asyncio.Event(), []

    async def client() -> None:
        while not stop.is_set():
            answers.append(await value(plane, "e", 3, version="2"))

    clients = [asyncio.create_task(client()) for _ in range(4)]
    await until(lambda: len(answers) > 10)
    only_second = "version_policy { specific { versions: [ 2 ] } }\n"
    for name, config in (("e", ENSEMBLE % (1, 1)), ("add", CONFIG), ("double", CONFIG)):
        (repository.path / name / "config.pbtxt").write_text(only_second + config)
        await plane.load(name, None, {})
    await settled(plane)
    seen = len(answers)
    await until(lambda: len(answers) > seen + 10)
    stop.set()
    await asyncio.gather(*clients)
    assert set(answers) == {70.0}
    assert {name: state for name, state in (await states(plane)).items() if state == "READY"} == {
        "add:2": "READY",
        "double:2": "READY",
        "e:2": "READY",
    }


async def test_a_version_may_be_an_ensemble_where_another_is_a_model(repository, serve):
    steps(repository)
    repository.write("m", {"1/model.py": source("y = x * 2"), "2/argosy.pbtxt": ENSEMBLE % (2, 2)}, ALL + CONFIG)
    plane = await serve()
    await plane.load("m", None, {})
    assert [await value(plane, "m", 3, version=version) for version in ("1", "2")] == [6.0, 70.0]


BROKEN = {
    "cut off": (CONFIG[:-30], r"version 2 is at UNAVAILABLE state.*argosy\.pbtxt"),
    "another model's": ('name: "other"' + CONFIG, "configuration of a model 'other'; its name must be 'm'"),
    "not text": (b"\xff\xfe\x00", "byte 0 is not UTF-8"),
    "without a backend": ("max_batch_size: 8", "could not determine backend"),
    "step not there": (ENSEMBLE % (2, 2), "depends on 'add' version 2 which has no loaded version"),
}


@pytest.mark.parametrize(("text", "message"), BROKEN.values(), ids=BROKEN)
async def test_a_bad_configuration_leaves_the_other_version_serving(repository, serve, loads, text, message):
    two_versions(repository, ALL + CONFIG, CONFIG, loads)
    steps(repository)
    (repository.path / "add" / "config.pbtxt").write_text(CONFIG + "version_policy { specific { versions: [ 1 ] } }")
    (repository.path / "m" / "2" / "model.py").rename(repository.path / "m" / "2" / "other.py")
    (repository.path / "m" / "2").rename(repository.path / "aside")
    plane = await serve()
    await plane.load("m", None, {})
    (repository.path / "aside").rename(repository.path / "m" / "2")
    content = text if isinstance(text, bytes) else text.encode()
    (repository.path / "m" / "2" / "argosy.pbtxt").write_bytes(content)
    with pytest.raises(ServingError, match="(?is)" + message) as caught:
        await plane.load("m", None, {})
    assert caught.value.kind in (ErrorKind.INVALID_ARG, ErrorKind.UNAVAILABLE)
    assert await value(plane, "m", 1) == 2.0
    index = {f"{m.name}:{m.version}": (m.state, m.reason) for m in (await plane.index(ready_only=False)).models}
    assert index["m:1"] == ("READY", "")
    assert index["m:2"][0] == "UNAVAILABLE"
    assert index["m:2"][1]
    assert loads.read_text().split() == ["1"]


async def test_polling_follows_a_versions_configuration(repository, serve):
    two_versions(repository, ALL + CONFIG, CONFIG)
    plane = await serve(ControlMode.POLL)
    own(repository, "m", 2, CONFIG + "instance_group { count: 2 kind: KIND_CPU }")
    await plane.poll()
    assert [plane.registry.find("m", version).instances for version in ("1", "2")] == [1, 2]
    (repository.path / "m" / "2" / "argosy.pbtxt").unlink()
    await plane.poll()
    assert plane.registry.find("m", "2").instances == 1


async def test_a_load_request_may_bring_a_versions_configuration(repository, serve):
    two_versions(repository, ALL + CONFIG, CONFIG)
    plane = await serve()
    model = json.dumps({"backend": "python", "versionPolicy": {"all": {}}})
    files = {
        "file:1/model.py": source("y = x * 5").encode(),
        "file:1/argosy.pbtxt": CONFIG.encode(),
    }
    await plane.load("m", model, files)
    assert await value(plane, "m", 1) == 5.0


async def test_settings_without_effect_are_reported_of_their_version(repository, serve):
    two_versions(repository, ALL + CONFIG, CONFIG + "optimization { eager_batching: true }")
    plane = await serve()
    await plane.load("m", None, {})
    reasons = {m.version: m.reason for m in (await plane.index(ready_only=False)).models}
    assert reasons == {"1": "", "2": "optimization.eager_batching has no effect on this server"}


LABELLED = CONFIG.replace("dims: [ 1 ] } ]\ndynamic", 'dims: [ 1 ] label_filename: "labels.txt" } ]\ndynamic')
WARM = """
model_warmup [ { name: "first" batch_size: 1 inputs { key: "X" value {
  data_type: TYPE_FP32 dims: [ 1 ] input_data_file: "x" } } } ]
"""


async def test_a_version_has_labels_and_warm_up_data_of_its_own(repository, serve, tmp_path):
    seen = tmp_path / "seen"
    log = f"open({str(seen)!r}, 'a').write(f'{{x[0, 0]:g}}\\n'); y = x"
    files = {
        "labels.txt": "one",
        "warmup/x": np.float32(1).tobytes(),
        "1/model.py": source(log),
        "2/model.py": source(log),
        "2/labels.txt": "two",
        "2/warmup/x": np.float32(2).tobytes(),
        "2/argosy.pbtxt": LABELLED + WARM,
    }
    repository.write("m", files, ALL + LABELLED + WARM)
    plane = await serve()
    await plane.load("m", None, {})
    assert [plane.registry.find("m", version).labels["Y"] for version in ("1", "2")] == [["one"], ["two"]]
    assert sorted(seen.read_text().split()) == ["1", "2"]


async def test_one_version_dies_and_comes_back_alone(repository, serve, loads, gate):
    die = f"os.path.exists({str(gate.opened)!r}) or (open({str(gate.opened)!r}, 'w').close(), os._exit(1)); y = x * 3"
    initialize = LOADS.format(path=str(loads))
    files = {
        "1/model.py": source("y = x * 2", initialize),
        "2/model.py": source(die, initialize),
        "2/argosy.pbtxt": CONFIG + 'parameters { key: "k" value { string_value: "1" } }',
    }
    repository.write("m", files, ALL + CONFIG)
    plane = await serve()
    await plane.load("m", None, {})
    served = {version: plane.registry.find("m", version) for version in ("1", "2")}
    with pytest.raises(ServingError):
        await value(plane, "m", 1, version="2")
    assert await value(plane, "m", 1, version="1") == 2.0
    await until(lambda: served["2"].ready)
    assert await value(plane, "m", 1, version="2") == 3.0
    assert {version: plane.registry.find("m", version) for version in ("1", "2")} == served
    assert sorted(loads.read_text().split()) == ["1", "2", "2"]


async def test_no_request_is_lost_while_one_revision_of_a_model_leaves(repository, serve, loads):
    two_versions(repository, ALL + CONFIG, CONFIG + "instance_group { count: 2 kind: KIND_CPU }", loads)
    plane = await serve(unload_grace=20)
    await plane.load("m", None, {})
    stop, answers = asyncio.Event(), []

    async def client() -> None:
        while not stop.is_set():
            answers.append(await value(plane, "m", 1, version="2"))

    clients = [asyncio.create_task(client()) for _ in range(4)]
    await until(lambda: len(answers) > 10)
    (repository.path / "m" / "config.pbtxt").write_text("version_policy { specific { versions: [ 2 ] } }")
    await plane.load("m", None, {})
    await settled(plane)
    seen = len(answers)
    await until(lambda: len(answers) > seen + 10)
    stop.set()
    await asyncio.gather(*clients)
    assert set(answers) == {3.0}
    assert loads.read_text().split().count("2") == 2, "each of its instances was loaded once"


async def test_promotion_moves_a_configuration_and_loads_nothing(repository, serve, loads):
    """The folder's configuration becomes that of version 2, and version 1 gets what it had as one of its own."""
    first, second = CONFIG, CONFIG + 'parameters { key: "k" value { string_value: "2" } }'
    two_versions(repository, ALL + first, second, loads)
    plane = await serve()
    await plane.load("m", None, {})
    served = [plane.registry.find("m", version) for version in ("1", "2")]
    own(repository, "m", 1, first)
    (repository.path / "m" / "config.pbtxt").write_text(ALL)
    await plane.load("m", None, {})
    (repository.path / "m" / "2" / "argosy.pbtxt").unlink()
    (repository.path / "m" / "config.pbtxt").write_text(ALL + second)
    await plane.load("m", None, {})
    assert [plane.registry.find("m", version) for version in ("1", "2")] == served
    assert sorted(loads.read_text().split()) == ["1", "2"]


async def test_versions_of_a_routed_model_have_variants_of_their_own(repository, serve):
    repository.add("low", execute="y = x * 2")
    repository.add("high", execute="y = x * 3")

    def routed(*models: str) -> str:
        rules = json.dumps({"variants": [{"model": model} for model in models]})
        return f'backend: "variants" parameters {{ key: "variants" value {{ string_value: \'{rules}\' }} }}'

    repository.write("m", {"1/.keep": "", "2/argosy.pbtxt": routed("high")}, ALL + routed("low"))
    plane = await serve()
    await plane.load("m", None, {})
    assert [await value(plane, "m", 1, version=version) for version in ("1", "2")] == [2.0, 3.0]
    await plane.unload("low", False)
    assert {name: state for name, state in (await states(plane)).items() if name.startswith("m")} == {
        "m:1": "UNAVAILABLE",
        "m:2": "READY",
    }
    assert await value(plane, "m", 1) == 3.0
