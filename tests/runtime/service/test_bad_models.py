"""Models that misbehave: the error is where the user looks, and everything else goes on serving."""

import asyncio
import os
import signal

import pytest
from tests.runtime.service.conftest import CONFIG, ask, infer, reason, states, value
from tests.waiting import until

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.repository.options import ControlMode


async def failure(plane, name: str) -> str:
    """Return the error of a load, which the index must repeat as its reason."""
    with pytest.raises(ServingError) as caught:
        await plane.load(name, None, {})
    assert await reason(plane, name) in caught.value.message
    return caught.value.message


@pytest.mark.parametrize(
    ("initialize", "message"),
    [
        ("raise ValueError('no weights')", "ValueError: no weights"),
        ("raise SystemExit('bye')", "SystemExit: bye"),
        ("os._exit(3)", "its process exited with code 3 while loading"),
        ("os.kill(os.getpid(), 9)", "its process was killed by signal 9 (SIGKILL) while loading"),
        ("import nothing_like_it", "No module named 'nothing_like_it'"),
    ],
)
async def test_initialize_that_fails(repository, serve, initialize, message):
    repository.add("good")
    repository.add("bad", initialize=initialize)
    plane = await serve()
    await plane.load("good", None, {})
    assert message in await failure(plane, "bad")
    assert await value(plane, "good", 5) == 5
    assert await states(plane) == {"good:1": "READY", "bad:1": "UNAVAILABLE"}


async def test_a_load_that_fails_answers_at_once(repository, serve):
    repository.add("bad", initialize="raise ValueError('no weights')")
    plane = await serve()
    # A process that failed to load and does not end by itself is waited for much longer than this.
    async with asyncio.timeout(20):
        await failure(plane, "bad")


async def test_initialize_that_hangs_holds_no_one_up(repository, serve):
    repository.add("good")
    repository.add("stuck", initialize="time.sleep(600)")
    plane = await serve(load_timeout=600)
    loading = asyncio.create_task(plane.load("stuck", None, {}))
    await plane.load("good", None, {})
    assert await value(plane, "good", 5) == 5
    assert (await states(plane))["stuck:1"] == "LOADING"
    loading.cancel()
    await asyncio.gather(loading, return_exceptions=True)


async def test_initialize_that_hangs_is_ended(repository, serve):
    stuck = 'parameters { key: "LOAD_TIMEOUT_SECONDS" value { string_value: "1.5" } }'
    repository.add("stuck", initialize="time.sleep(600)", config=CONFIG + stuck)
    plane = await serve()
    assert "is still loading after 1.5 s" in await failure(plane, "stuck")


async def test_a_crash_while_executing_fails_that_batch_and_the_model_comes_back(repository, serve):
    repository.add("m", execute="os._exit(7) if x[0, 0] < 0 else None")
    plane = await serve()
    await plane.load("m", None, {})
    with pytest.raises(ServingError) as caught:
        await infer(plane, ask("m", -1.0))
    assert caught.value.kind is ErrorKind.INTERNAL
    assert "its process exited with code 7; it is being restarted" in caught.value.message
    assert await value(plane, "m", 4) == 4, "the request waits for the new process"
    assert plane.statistics("m", "").model_stats[0].inference_stats.fail.count == 1


async def test_a_killed_process_loses_only_what_it_was_working_on(repository, serve, gate, tmp_path):
    pid = tmp_path / "pid"
    repository.add("m", initialize=f"open({str(pid)!r}, 'w').write(str(os.getpid()))", execute=gate.code)
    plane = await serve()
    await plane.load("m", None, {})
    running = asyncio.create_task(value(plane, "m"))
    await gate.reached()
    waiting = [asyncio.create_task(value(plane, "m", n)) for n in range(5)]
    await asyncio.sleep(0)
    os.kill(int(pid.read_text()), signal.SIGKILL)
    gate.open()
    with pytest.raises(ServingError, match="SIGKILL"):
        await running
    assert await asyncio.gather(*waiting) == [0, 1, 2, 3, 4]


async def test_a_process_that_cannot_come_back_makes_the_model_unavailable(repository, serve):
    marker = repository.path.parent / "second"
    code = f"""
    if os.path.exists({str(marker)!r}):
        raise ValueError('once was enough')
    open({str(marker)!r}, 'w').close()
    """
    repository.add("m", initialize=code, execute="os._exit(1)")
    plane = await serve()
    await plane.load("m", None, {})
    with pytest.raises(ServingError, match="exited with code 1"):
        await infer(plane, ask("m"))
    with pytest.raises(ServingError, match="once was enough"):
        await infer(plane, ask("m"))
    assert not plane.model_ready("m", "")
    assert "once was enough" in await reason(plane, "m")
    marker.unlink()


async def test_execute_that_raises_fails_the_batch_and_nothing_else(repository, serve):
    repository.add("m", execute="assert x[0, 0] >= 0, 'negative'")
    plane = await serve()
    await plane.load("m", None, {})
    with pytest.raises(ServingError, match=r"Failed to process the request\(s\) for model 'm_0', message: .*negative"):
        await infer(plane, ask("m", -1.0))
    assert await value(plane, "m", 4) == 4


@pytest.mark.parametrize(
    ("files", "config", "message"),
    [
        ({"1/model.onnx": b"not a model"}, 'backend: "onnxruntime"', "model.onnx"),
        ({"1/other.txt": ""}, 'backend: "onnxruntime"', "model.onnx"),
        ({"1/other.txt": ""}, CONFIG, "model.py"),
        (
            {"1/model.pt": b"garbage"},
            (
                'backend: "pytorch" input [{name:"X" data_type: TYPE_FP32 dims:[1]}] '
                'output [{name:"Y" data_type: TYPE_FP32 dims:[1]}]'
            ),
            "model.pt",
        ),
        ({"1/model.py": ""}, "max_batchsize: 3", "max_batch_size"),
        ({"1/model.py": ""}, CONFIG.replace("TYPE_FP32", "TYPE_FLOAT"), "TYPE_FLOAT"),
        ({"1/model.py": ""}, 'name: "other"\n' + CONFIG, "directory name must equal model name"),
        ({"model.py": ""}, CONFIG, "at least one version must be available"),
        ({"1/model.py": ""}, CONFIG + "sequence_batching { }", "sequence_batching"),
        ({"1/model.py": ""}, CONFIG + 'model_repository_agents { agents { name: "x" } }', "repository agent 'x'"),
        ({"1/model.py": ""}, 'backend: "nope"\n' + CONFIG.replace('backend: "python"', ""), "unable to find backend"),
    ],
    ids=[
        "corrupt onnx",
        "no onnx",
        "no model.py",
        "corrupt pt",
        "typo",
        "datatype",
        "name",
        "no version",
        "sequence",
        "agents",
        "backend",
    ],
)
async def test_folders_that_cannot_be_served_say_why(repository, serve, files, config, message):
    repository.add("good")
    repository.write("bad", files, config)
    plane = await serve(ControlMode.NONE)
    assert message in await reason(plane, "bad")
    assert await value(plane, "good", 5) == 5
    # As in Triton, what cannot even be read is no model that the server's readiness waits for.
    assert plane.ready() is not plane.registry.records["bad"].registered


async def test_what_a_load_says_tells_whether_the_model_was_opened(repository, serve):
    repository.write("unread", {"1/model.py": ""}, "max_batch_size: -1")
    repository.write("backend", {"1/x": ""}, CONFIG.replace('"python"', '"nope"'))
    repository.write("dims", {"1/model.py": "", "2/model.py": ""}, CONFIG.replace("dims: [ 1 ]", "dims: [ 0 ]", 1))
    plane = await serve()
    with pytest.raises(ServingError, match="failed to load 'unread', failed to poll from model repository: ") as unread:
        await plane.load("unread", None, {})
    with pytest.raises(ServingError) as backend:
        await plane.load("backend", None, {})
    with pytest.raises(ServingError) as dims:
        await plane.load("dims", None, {})
    kinds = [caught.value.kind for caught in (unread, backend, dims)]
    assert kinds == [ErrorKind.INTERNAL, ErrorKind.INVALID_ARG, ErrorKind.INVALID_ARG]
    assert backend.value.message == (
        "load failed for model 'backend': version 1 is at UNAVAILABLE state: Invalid argument: unable to find backend "
        "library for backend 'nope', try specifying runtime on the model configuration.;\n"
    )
    assert "load failed for model 'dims': version 2 is at UNAVAILABLE state: Invalid argument: " in dims.value.message


async def test_a_warm_up_is_checked_like_a_request(repository, serve):
    sample = """model_warmup [ { name: "w" batch_size: 1 inputs {
        key: "%s" value { data_type: TYPE_FP32 dims: %d zero_data: true } } } ]"""
    repository.add("name", config=CONFIG + sample % ("NOPE", 1))
    repository.add("shape", config=CONFIG + sample % ("X", 3))
    plane = await serve()
    with pytest.raises(ServingError, match="unexpected inference input 'NOPE' for model 'name'"):
        await plane.load("name", None, {})
    with pytest.raises(ServingError, match="unexpected shape for input 'X' for model 'shape'"):
        await plane.load("shape", None, {})


async def test_a_cycle_of_ensembles_is_named(repository, serve):
    text = """platform: "ensemble" max_batch_size: 8
    input [ { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } ] output [ { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] } ]
    ensemble_scheduling { step [ { model_name: "%s" model_version: -1
      input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" } } ] }"""
    repository.write("e", {"1/.keep": ""}, text % "f")
    repository.write("f", {"1/.keep": ""}, text % "e")
    plane = await serve(ControlMode.NONE)
    assert "circular dependency between ensembles" in await reason(plane, "e")


async def test_cancelled_requests_leave_the_queue(repository, serve, gate):
    repository.add("slow", execute=gate.code, config=CONFIG.replace("dynamic_batching { }", ""))
    plane = await serve()
    await plane.load("slow", None, {})
    first = asyncio.create_task(value(plane, "slow", 1))
    await gate.reached()
    second = asyncio.create_task(value(plane, "slow", 2))
    await asyncio.sleep(0)
    second.cancel()
    third = asyncio.create_task(value(plane, "slow", 3))
    gate.open()
    assert (await first, await third) == (1, 3)
    assert second.cancelled()
    assert plane.statistics("slow", "").model_stats[0].execution_count == 2


async def test_a_process_that_cannot_be_started_is_tried_again(repository, serve, monkeypatch):
    repository.add("m", execute="os._exit(1) if x[0, 0] < 0 else None")
    plane = await serve()
    await plane.load("m", None, {})
    start = asyncio.create_subprocess_exec
    refusals = iter([OSError(11, "Resource temporarily unavailable")])

    async def start_or_not(*args: object, **options: object) -> object:
        for refusal in refusals:
            raise refusal
        return await start(*args, **options)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start_or_not)
    with pytest.raises(ServingError, match="exited with code 1"):
        await infer(plane, ask("m", -1.0))
    with pytest.raises(ServingError, match=r"cannot start its process: .*temporarily unavailable"):
        await infer(plane, ask("m", 1.0))
    await until(lambda: plane.model_ready("m", ""))
    assert await value(plane, "m", 4) == 4


async def test_a_model_that_ends_with_every_request_is_refused_with_the_reason(repository, serve):
    repository.add("m", execute="os._exit(4)")
    plane = await serve()
    await plane.load("m", None, {})
    refused = []
    while not refused:
        with pytest.raises(ServingError) as caught:
            await infer(plane, ask("m"))
        refused = [caught.value] if caught.value.kind is ErrorKind.UNAVAILABLE else []
    assert "exited with code 4" in refused[0].message
    assert "times in a row without an answer" in refused[0].message
