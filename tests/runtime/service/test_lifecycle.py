"""Models come, change and go, and no request is lost on the way."""

import asyncio
import shutil

import pytest
from tests.runtime.service.conftest import CONFIG, ask, infer, reason, settled, states, value
from tests.waiting import until

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.repository.options import ControlMode


async def test_load_infer_unload(repository, serve):
    repository.add("double", execute="y = 2 * x")
    plane = await serve()
    assert await states(plane) == {"double": ""}
    await plane.load("double", None, {})
    assert await value(plane, "double", 3) == 6
    await plane.unload("double", False)
    with pytest.raises(ServingError) as caught:
        await infer(plane, ask("double"))
    assert caught.value.kind is ErrorKind.NOT_FOUND
    assert caught.value.message == "Request for unknown model: 'double' has no available versions"
    assert not plane.model_ready("double", "")
    await settled(plane)
    assert await states(plane) == {"double:1": "UNAVAILABLE"}


async def test_a_new_version_takes_over_without_losing_a_request(repository, serve):
    repository.add("m", execute="time.sleep(0.01); y = x * 0 + 1")
    plane = await serve(ControlMode.NONE, unload_grace=20)
    answers: asyncio.Queue[float] = asyncio.Queue()
    stop = asyncio.Event()

    async def client() -> None:
        while not stop.is_set():
            answers.put_nowait(await value(plane, "m"))

    clients = [asyncio.create_task(client()) for _ in range(8)]
    assert {await answers.get() for _ in range(20)} == {1.0}
    repository.add("m", execute="y = x * 0 + 2", version=2)
    await plane.registry.load("m", None, {})
    while await answers.get() == 1.0:
        pass
    assert {await answers.get() for _ in range(20)} <= {1.0, 2.0}
    stop.set()
    await asyncio.gather(*clients)
    assert await value(plane, "m") == 2
    await settled(plane)
    assert (await states(plane))["m:1"] == "UNAVAILABLE"


async def test_version_policies(repository, serve):
    for version in (1, 2, 3):
        repository.add(
            "all", execute=f"y = x * 0 + {version}", version=version, config=CONFIG + "version_policy{all{}}"
        )
    plane = await serve()
    await plane.load("all", None, {})
    assert [await value(plane, "all", version=v) for v in ("", "1", "2", "3")] == [3, 1, 2, 3]
    (repository.path / "all/config.pbtxt").write_text(CONFIG + "version_policy { specific { versions: [2] } }")
    second = plane.registry.find("all", "2")
    await plane.load("all", None, {})
    assert await value(plane, "all") == 2
    assert plane.registry.find("all", "2") is second, "a change of policy alone restarts nothing"
    with pytest.raises(ServingError, match="version 3 is not at ready state"):
        await infer(plane, ask("all", version="3"))


async def test_a_reload_that_fails_leaves_the_old_one_serving(repository, serve):
    repository.add("m", execute="y = x + 1")
    plane = await serve()
    await plane.load("m", None, {})
    repository.add("m", initialize="raise KeyError('factor')")
    with pytest.raises(ServingError, match=r"version 1 is at UNAVAILABLE state: Internal: .*KeyError: 'factor'"):
        await plane.load("m", None, {})
    assert await value(plane, "m", 1) == 2
    (repository.path / "m/config.pbtxt").write_text("max_batch_size: -1")
    with pytest.raises(ServingError, match="failed to load 'm', failed to poll from model repository: "):
        await plane.load("m", None, {})
    assert await value(plane, "m", 1) == 2
    assert await states(plane) == {"m:1": "READY"}


async def test_an_unchanged_model_is_not_restarted(repository, serve):
    repository.add("m")
    plane = await serve()
    await plane.load("m", None, {})
    served = plane.registry.find("m")
    await plane.load("m", None, {})
    assert plane.registry.find("m") is served


async def test_load_with_a_config_and_files_of_its_own(repository, serve):
    folder = repository.add("m", execute="y = x + 1")
    plane = await serve()
    config = (
        '{"backend":"python","max_batch_size":8,"input":[{"name":"X","data_type":"TYPE_FP32","dims":[1]}],'
        '"output":[{"name":"Y","data_type":"TYPE_FP32","dims":[1]}]}'
    )
    source = (folder / "1/model.py").read_bytes().replace(b"y = x + 1", b"y = x + 5")
    await plane.load("m", config, {"file:1/model.py": source})
    assert await value(plane, "m", 1) == 6
    for bad in ("file:../x", "file:1/../../m2/x", "file:/../x", "file:", "1/model.py"):
        with pytest.raises(
            ServingError, match=r"failed to poll.*: Invalid file parameter '.*must stay within"
        ) as caught:
            await plane.load("m", config, {bad: b""})
        assert caught.value.kind is ErrorKind.INTERNAL
    with pytest.raises(ServingError, match="failed to poll from model repository: File name too long"):
        await plane.load("m", config, {f"file:1/{'A' * 256}": b""})
    await plane.load("m", config, {"file:1/./a/../model.py": source})
    assert await value(plane, "m", 1) == 6
    with pytest.raises(ServingError, match="needs the parameter 'config'") as caught:
        await plane.load("m", None, {"file:1/model.py": source})
    assert caught.value.kind is ErrorKind.INTERNAL


async def test_without_overrides_models_are_as_the_repository_has_them(repository, serve):
    repository.add("m", execute="y = x + 1")
    plane = await serve(overrides=False)
    for config, files in (("{}", {}), (None, {"file:1/model.py": b"raise SystemExit"})):
        with pytest.raises(ServingError, match="--allow-override-files=true") as caught:
            await plane.load("m", config, files)
        assert caught.value.kind is ErrorKind.UNSUPPORTED
    assert await states(plane) == {"m": ""}
    await plane.load("m", None, {})
    assert await value(plane, "m", 1) == 2


async def test_polling_follows_the_folder(repository, serve):
    repository.add("m", execute="y = x + 1")
    plane = await serve(ControlMode.POLL)
    assert await value(plane, "m", 1) == 2
    repository.add("m", execute="y = x + 2")
    repository.add("new")
    await plane.poll()
    assert await value(plane, "m", 1) == 3
    assert await value(plane, "new", 4) == 4
    (repository.path / "new").rename(repository.path.parent / "gone")
    await plane.poll()
    with pytest.raises(ServingError):
        await infer(plane, ask("new"))
    await settled(plane)
    assert await states(plane) == {"m:1": "READY"}, "the index has the models of the repository"
    with pytest.raises(ServingError, match="explicit model load / unload is not allowed"):
        await plane.load("m", None, {})


ENSEMBLE = """
platform: "ensemble"
max_batch_size: 8
input [ { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] } ]
ensemble_scheduling {
  step [ { model_name: "a" model_version: -1 input_map { key: "X" value: "X" } output_map { key: "Y" value: "mid" } },
         { model_name: "b" model_version: -1 input_map { key: "X" value: "mid" } output_map { key: "Y" value: "Y" } } ]
}
"""


async def test_polling_unloads_a_model_that_two_repositories_have(repository, serve, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    repository.add("m", execute="y = x + 1")
    plane = await serve(ControlMode.POLL, paths=(repository.path, other))
    shutil.copytree(repository.path / "m", other / "m")
    await plane.poll()
    with pytest.raises(ServingError, match="has no available versions"):
        await infer(plane, ask("m"))
    await settled(plane)
    assert await reason(plane, "m") == "model appears in two or more repositories"
    shutil.rmtree(repository.path / "m")
    await plane.poll()
    assert await value(plane, "m", 1) == 2
    assert await states(plane) == {"m:1": "READY"}


async def test_the_index_has_a_model_without_a_folder_while_it_serves(repository, serve):
    folder = repository.add("m")
    plane = await serve()
    await plane.load("m", None, {})
    shutil.rmtree(folder)
    assert await states(plane) == {"m:1": "READY"}
    await plane.unload("m", False)
    await settled(plane)
    assert await states(plane) == {}


async def test_a_model_without_a_configuration_needs_its_completion(repository, serve):
    (repository.add("m") / "config.pbtxt").unlink()
    plane = await serve(autocomplete=False)
    with pytest.raises(ServingError, match=r"failed to poll .*config\.pbtxt is missing, and configurations are not"):
        await plane.load("m", None, {})
    with pytest.raises(ServingError, match="'m' is not found"):
        await infer(plane, ask("m"))


async def test_metadata_of_a_version_names_that_version(repository, serve):
    for version in (1, 2):
        repository.add("m", version=version, config=CONFIG + "version_policy { all {} }")
    plane = await serve()
    await plane.load("m", None, {})
    assert [list(plane.model_metadata("m", version).versions) for version in ("", "1")] == [["1", "2"], ["1"]]


async def test_an_ensemble_loads_its_steps_and_follows_them(repository, serve):
    repository.add("a", execute="y = x + 1")
    repository.add("b", execute="y = x * 10")
    repository.write("e", {"1/.keep": ""}, ENSEMBLE)
    plane = await serve()
    await plane.load("e", None, {})
    assert await value(plane, "e", 1) == 20
    repository.add("a", execute="y = x + 2")
    await plane.load("a", None, {})
    assert await value(plane, "e", 1) == 30
    await plane.unload("a", False)
    with pytest.raises(ServingError, match="has no available versions"):
        await infer(plane, ask("e"))
    assert await reason(plane, "e") == "unloaded"
    await plane.load("a", None, {})
    assert await value(plane, "e", 1) == 30
    await plane.unload("e", True)
    await settled(plane)
    left = {"a:1": "READY", "b:1": "UNAVAILABLE", "e:1": "UNAVAILABLE"}
    assert await states(plane) == left, "a was asked for by name"


async def test_steps_of_different_requests_overlap(repository, serve):
    for name in "ab":
        repository.add(name, execute="time.sleep(0.1)", config=CONFIG.replace("dynamic_batching { }", ""))
    repository.write("e", {"1/.keep": ""}, ENSEMBLE)
    plane = await serve()
    await plane.load("e", None, {})
    both = 0
    tasks = [asyncio.create_task(value(plane, "e")) for _ in range(4)]
    while not all(task.done() for task in tasks):
        await asyncio.sleep(0.01)
        running = [plane.registry.find(name).statistics for name in "ab"]
        both += running[0].execution_count >= 2 and running[1].execution_count < running[0].execution_count
    await asyncio.gather(*tasks)
    assert both, "while b worked on one request, a went on with the next"


async def test_warm_up_runs_before_the_first_request(repository, serve):
    warm = 'model_warmup [ { name: "w" batch_size: 2 inputs { key: "X" value { data_type: TYPE_FP32 dims: 1 %s } } } ]'
    repository.add("m", config=CONFIG + warm % "zero_data: true")
    repository.add("bad", execute="raise ValueError('cold')", config=CONFIG + warm % "random_data: true")
    plane = await serve()
    await plane.load("m", None, {})
    statistics = plane.statistics("m", "").model_stats[0]
    assert (statistics.inference_count, statistics.execution_count) == (2, 1)
    with pytest.raises(ServingError, match="cold"):
        await plane.load("bad", None, {})
    with pytest.raises(ServingError):
        await infer(plane, ask("bad"))


async def test_warm_up_goes_with_preserve_ordering(repository, serve):
    ordered = CONFIG.replace("dynamic_batching { }", "dynamic_batching { preserve_ordering: true }")
    sample = 'inputs { key: "X" value { data_type: TYPE_FP32 dims: 1 zero_data: true } }'
    repository.add("m", config=ordered + 'model_warmup { name: "w" batch_size: 2 ' + sample + " }")
    plane = await serve()
    await plane.load("m", None, {})
    assert await value(plane, "m", 3) == 3


async def test_a_request_goes_through_the_versions_it_began_with(repository, serve, gate):
    repository.add("a", execute=f"{gate.code}; y = x + 1")
    repository.add("b", execute="y = x * 10")
    repository.write("e", {"1/.keep": ""}, ENSEMBLE)
    plane = await serve()
    await plane.load("e", None, {})
    begun = asyncio.create_task(value(plane, "e", 1))
    await gate.reached()
    repository.add("b", execute="y = x * 100")
    await plane.load("b", None, {})
    assert not begun.done()
    gate.open()
    assert await value(plane, "e", 1) == 200
    assert await begun == 20
    gate.close()
    begun = asyncio.create_task(value(plane, "e", 1))
    await gate.reached()
    await plane.unload("b", False)
    assert (await states(plane))["b:1"] == "UNLOADING"
    gate.open()
    assert await begun == 200, "a step that a request will need stays until then"
    await settled(plane)
    assert (await states(plane))["b:1"] == "UNAVAILABLE"


async def test_an_ensemble_follows_the_health_of_its_steps(repository, serve):
    marker = repository.path.parent / "once"
    code = f"""
    if os.path.exists({str(marker)!r}):
        raise ValueError('not again')
    open({str(marker)!r}, 'w').close()
    """
    repository.add("a", initialize=code, execute="os._exit(1) if x[0, 0] < 0 else None")
    repository.add("b")
    repository.write("e", {"1/.keep": ""}, ENSEMBLE)
    plane = await serve()
    await plane.load("e", None, {})
    with pytest.raises(ServingError, match="exited with code 1"):
        await infer(plane, ask("e", -1.0))
    with pytest.raises(ServingError, match="not again"):
        await infer(plane, ask("e", 1.0))
    assert not plane.model_ready("e", "")
    marker.unlink()
    await until(lambda: plane.model_ready("e", ""))
    assert await value(plane, "e", 3) == 3


@pytest.mark.parametrize("desired", [("*",), ("a", "b", "a", "e")])
async def test_models_named_at_start_load_side_by_side(repository, serve, desired):
    folder = repository.path.parent
    for name, other in ("ab", "ba"):
        begun, awaited = folder / name, folder / other
        code = f"open({str(begun)!r}, 'w').close()\nwhile not os.path.exists({str(awaited)!r}): time.sleep(0.005)"
        repository.add(name, initialize=code)
    repository.write("e", {"1/.keep": ""}, ENSEMBLE)
    plane = await serve(startup_models=desired)
    assert await states(plane) == {"a:1": "READY", "b:1": "READY", "e:1": "READY"}
    assert plane.ready()


async def test_a_model_named_at_start_that_is_not_there(repository, serve):
    repository.add("a")
    plane = await serve(startup_models=("a", "none"))
    assert await states(plane) == {"a:1": "READY"}
    assert plane.ready()


@pytest.mark.parametrize("files", [{}, {"file:1/model.py": b""}], ids=["repository", "override"])
@pytest.mark.parametrize("name", ["", ".", "..", "/", "m/", "m/1", "../outside", "/outside", "m\0"])
async def test_a_name_that_is_no_folder_of_the_repository_is_unknown(repository, serve, name, files):
    repository.add("m")
    repository.write("../outside", {"1/model.py": ""}, CONFIG)
    for above in (repository.path, repository.path.parent):
        (above / "1").mkdir()
        (above / "config.pbtxt").write_text(CONFIG)
    plane = await serve()
    before = await states(plane)
    with pytest.raises(ServingError) as caught:
        await plane.load(name, "{}" if files else None, files)
    refusals = {
        "": "Model name cannot be empty. Please enter a valid name to deploy.",
        **{one: f"failed to load '{one}', failed to poll from model repository" for one in (".", "m\0")},
    }
    traversal = f"invalid model name '{name}', model name must not contain path traversal characters"
    assert caught.value.message == refusals.get(name, traversal)
    assert caught.value.kind is (ErrorKind.INTERNAL if name in (".", "m\0") else ErrorKind.INVALID_ARG)
    assert await states(plane) == before


async def test_a_name_without_a_folder_is_unknown_at_the_start(repository, serve):
    repository.write("..", {"1/model.py": ""}, CONFIG)
    plane = await serve(startup_models=("..", ""))
    assert await states(plane) == {}
    assert plane.ready()


async def test_no_thread_for_loads_is_one(repository, serve):
    repository.add("a")
    plane = await serve(ControlMode.NONE, parallel_loads=0)
    assert await states(plane) == {"a:1": "READY"}
