"""Adapters of an instance on a stand-in of vLLM: loaded, replaced and unloaded while it serves."""

import asyncio
import json
import threading
from typing import Any

import pytest
from tests import lora_files
from tests.runtime.backends.vllm.engine_steps import only_error, sampling, settled, step
from tests.runtime.language.language_requests import generation
from tests.waiting import wait

from argosy_runtime.backends import vllm as backend
from argosy_runtime.backends.adapters.files import adapter_rank
from argosy_runtime.backends.engines.commands import AddAdapter, RemoveAdapter, Sleep
from argosy_runtime.backends.vllm import adapters
from argosy_runtime.backends.vllm import instance as instance_module
from argosy_runtime.errors import ErrorKind, ServingError


def test_adapters_are_added_and_removed(open_instance, responder, llm, tmp_path):
    for name in ("a", "b", "misfit"):
        lora_files.write(tmp_path / name)
    instance = open_instance(enable_lora=True)
    instance.manage(AddAdapter("x", str(tmp_path / "a")))
    named = generation(text_input="ab", sampling_parameters=sampling(lora_name="x"))
    instance.execute([named], responder)
    responder.wait_for_final(0)
    assert llm().calls[-1][3].lora_path == str(tmp_path / "a")
    instance.manage(AddAdapter("x", str(tmp_path / "b")))
    wait(lambda: llm().loras == {2}, 0.01)
    with pytest.raises(ServingError, match=r"has no '.*c/adapter_config.json'") as refused:
        instance.manage(AddAdapter("c", str(tmp_path / "c")))
    assert refused.value.kind is ErrorKind.UNAVAILABLE
    with pytest.raises(ServingError, match=r"adapter 'm' of '.*misfit' does not fit model 'llm': .*shapes") as refused:
        instance.manage(AddAdapter("m", str(tmp_path / "misfit")))
    assert refused.value.kind is ErrorKind.INVALID_ARG
    instance.manage(RemoveAdapter("x"))
    wait(lambda: llm().loras == set(), 0.01)
    with pytest.raises(ServingError, match="model 'llm' has no adapter 'x'; it has none") as refused:
        instance.manage(RemoveAdapter("x"))
    assert refused.value.kind is ErrorKind.NOT_FOUND


def test_files_of_adapters_are_not_read_on_the_engines_loop(open_instance, tmp_path, monkeypatch):
    lora_files.write(tmp_path / "a")
    instance = open_instance(enable_lora=True)
    checks: list[bool] = []

    def check(*arguments: Any) -> int:
        checks.append(asyncio._get_running_loop() is None)
        return adapter_rank(*arguments)

    monkeypatch.setattr(adapters, "adapter_rank", check)
    instance.manage(AddAdapter("x", str(tmp_path / "a")))
    assert checks == [True]


def test_an_adapter_stays_until_its_requests_have_ended(open_instance, responder, llm, by_steps, tmp_path):
    lora_files.write(tmp_path / "a")
    instance = open_instance(enable_lora=True)
    instance.manage(AddAdapter("x", str(tmp_path / "a")))
    named = generation(text_input="ab", sampling_parameters=sampling(lora_name="x", max_tokens=1))
    instance.execute([named], responder)
    settled(llm())
    instance.manage(RemoveAdapter("x"))
    instance.execute([generation(), named], responder)
    assert only_error(responder, 1).kind is ErrorKind.NOT_FOUND
    assert llm().loras == {1}
    step(llm())
    wait(lambda: llm().loras == set(), 0.01)


@pytest.mark.usefixtures("llm_class")
def test_no_command_and_no_end_wait_for_a_request_that_never_ends(folder, host, responder, llm, monkeypatch, tmp_path):
    monkeypatch.setattr(instance_module, "CLOSE_SECONDS", 0.0)
    for name in ("a", "b"):
        lora_files.write(tmp_path / name)
    instance = backend.load(folder(enable_lora=True).spec(), host)
    instance.manage(AddAdapter("x", str(tmp_path / "a")))
    instance.execute([generation(text_input="\0", sampling_parameters=sampling(lora_name="x"))], responder)
    settled(llm())
    instance.manage(RemoveAdapter("x"))
    instance.manage(AddAdapter("y", str(tmp_path / "b")))
    instance.manage(AddAdapter("x", str(tmp_path / "b")))
    assert llm().loras == {1, 2, 3}
    instance.close()
    assert only_error(responder).kind is ErrorKind.UNAVAILABLE


@pytest.mark.usefixtures("llm_class")
def test_closing_ends_a_command_that_waits_for_a_request(folder, host, llm, monkeypatch):
    monkeypatch.setattr(instance_module, "CLOSE_SECONDS", 0.0)
    requested, ended = threading.Event(), threading.Event()

    async def sleep(self, level=1, mode="abort"):
        requested.set()
        await asyncio.Event().wait()

    instance = backend.load(folder(enable_sleep_mode=True).spec(), host)
    monkeypatch.setattr(type(llm()), "sleep", sleep)

    def command() -> None:
        with pytest.raises(ServingError):
            instance.manage(Sleep())
        ended.set()

    threading.Thread(target=command).start()
    assert requested.wait(30)
    instance.close()
    assert ended.wait(30)


def test_listed_adapters_turn_lora_on_and_are_left_to_the_server(folder, open_instance, llm, tmp_path):
    lora_files.write(tmp_path / "a", rank=40)
    (tmp_path / "llm/1").mkdir(parents=True)
    (tmp_path / "llm/1/multi_lora.json").write_text(json.dumps({"a": str(tmp_path / "a")}))
    open_instance()
    arguments = llm().engine_args
    assert (arguments.enable_lora, arguments.max_loras, arguments.max_lora_rank) == (True, 2, 64)
    assert llm().loras == set()


def test_an_engine_without_lora_takes_no_adapters(open_instance, tmp_path):
    with pytest.raises(ServingError, match="model 'llm' was opened without LoRA") as refused:
        open_instance().manage(AddAdapter("a", str(tmp_path)))
    assert refused.value.kind is ErrorKind.UNSUPPORTED
