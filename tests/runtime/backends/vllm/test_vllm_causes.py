"""Why an engine did not start, or ended: what its processes print becomes part of the error."""

import subprocess
import sys

import pytest
from tests.runtime.backends.vllm.engine_steps import only_error, settled
from tests.runtime.language.language_requests import generation

from argosy_runtime.backends import vllm as backend
from argosy_runtime.backends.vllm.causes import LONGEST_CAUSE, cause_of
from argosy_runtime.errors import ServingError

FULL = "Insufficient space in /dev/shm for shared-memory allocation: 160 MiB required, 64 MiB free"
POINTER = "Engine core initialization failed. See root cause above. Failed core proc(s): {}"
DYING = f"import sys; sys.stdin.read(); print('Process EngineCore:', file=sys.stderr); raise RuntimeError({FULL!r})"


def core_process(program: str = DYING) -> subprocess.Popen[bytes]:
    """Return a process that ends as an engine's core does, once its standard input is closed."""
    return subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE)


def end(core: subprocess.Popen[bytes]) -> None:
    core.communicate()


def test_an_engine_that_does_not_start_says_the_cause(folder, host, llm_class, monkeypatch, capfd):
    def start(*arguments, **options):
        end(core_process())
        raise RuntimeError(POINTER)

    monkeypatch.setattr(llm_class, "from_engine_args", start)
    with pytest.raises(ServingError) as refused:
        backend.load(folder().spec(), host)
    assert refused.value.message == (
        f"failed to load 'llm' version 1: RuntimeError: {POINTER}; cause: RuntimeError: {FULL}"
    )
    assert capfd.readouterr().err.endswith(f"RuntimeError: {FULL}\n")


def test_a_process_without_words_has_no_cause(folder, host, llm_class, monkeypatch):
    def start(*arguments, **options):
        end(core_process("import os; os.abort()"))
        raise RuntimeError(POINTER)

    monkeypatch.setattr(llm_class, "from_engine_args", start)
    with pytest.raises(ServingError) as refused:
        backend.load(folder().spec(), host)
    assert refused.value.message.endswith(POINTER)


def test_an_engine_that_dies_later_says_the_cause(
    open_instance, responder, llm, llm_class, by_steps, host, monkeypatch
):
    cores, made = [], llm_class.from_engine_args

    def start(*arguments, **options):
        cores.append(core_process())
        return made(*arguments, **options)

    monkeypatch.setattr(llm_class, "from_engine_args", start)
    instance = open_instance()
    instance.execute([generation(text_input="ab", stream=True)], responder)
    settled(llm())
    end(cores[0])
    llm().loop.call_soon_threadsafe(llm().die)
    assert host.losses.get(timeout=30).message.endswith(f"; cause: RuntimeError: {FULL}")
    assert only_error(responder).message.endswith(f"; cause: RuntimeError: {FULL}")


PREFIXED = """\
(EngineCore pid=70) WARNING 11-26 07:00:01 [cpu.py:93] Traceback (most recent call last):
(Worker_TP1 pid=72) ERROR 11-26 07:00:02 [multiproc_executor.py:953] WorkerProc failed to start.
(Worker_TP1 pid=72) ERROR 11-26 07:00:02 [multiproc_executor.py:953] Traceback (most recent call last):
(Worker_TP0 pid=71) ERROR 11-26 07:00:02 [multiproc_executor.py:953] WorkerProc failed to start.
(Worker_TP1 pid=72) ERROR 11-26 07:00:02 [multiproc_executor.py:953]   File "a.py", line 1, in main
(Worker_TP0 pid=71) ERROR 11-26 07:00:02 [multiproc_executor.py:953] Traceback (most recent call last):
(Worker_TP1 pid=72) ERROR 11-26 07:00:02 [multiproc_executor.py:953] KeyError: 'x'
(Worker_TP1 pid=72) ERROR 11-26 07:00:02 [multiproc_executor.py:953]
(Worker_TP1 pid=72) ERROR 11-26 07:00:02 [multiproc_executor.py:953] The above exception was the direct cause of:
(Worker_TP1 pid=72) ERROR 11-26 07:00:02 [multiproc_executor.py:953]
(Worker_TP1 pid=72) ERROR 11-26 07:00:02 [multiproc_executor.py:953] Traceback (most recent call last):
(Worker_TP1 pid=72) ERROR 11-26 07:00:02 [multiproc_executor.py:953]   File "a.py", line 2, in main
(Worker_TP1 pid=72) ERROR 11-26 07:00:02 [multiproc_executor.py:953] torch.OutOfMemoryError: CUDA out of memory.
(Worker_TP0 pid=71) ERROR 11-26 07:00:02 [multiproc_executor.py:953]   File "a.py", line 1, in main
(Worker_TP0 pid=71) ERROR 11-26 07:00:02 [multiproc_executor.py:953] RuntimeError: the other one ended
(EngineCore pid=70) ERROR 11-26 07:00:03 [core.py:1510] EngineCore failed to start.
(EngineCore pid=70) ERROR 11-26 07:00:03 [core.py:1510] Traceback (most recent call last):
(EngineCore pid=70) ERROR 11-26 07:00:03 [core.py:1510] Exception: WorkerProc initialization failed. See stack trace
"""


def test_of_several_processes_the_first_one_has_the_cause():
    assert cause_of(PREFIXED.splitlines()) == "torch.OutOfMemoryError: CUDA out of memory."


def test_colors_and_the_prefix_of_older_releases_are_no_part_of_it():
    lines = [
        "(EngineCore_DP0 pid=70) Process EngineCore_DP0:\r",
        "(EngineCore_DP0 pid=70) \x1b[31mTraceback (most recent call last):\x1b[0m",
        '(EngineCore_DP0 pid=70)   File "a.py", line 1',
        f"(EngineCore_DP0 pid=70) \x1b[31mRuntimeError: {FULL}\x1b[0m",
    ]
    assert cause_of(lines) == f"RuntimeError: {FULL}"


def test_what_did_not_end_a_process_is_no_cause():
    failed = ["Invocation of add_lora method failed", "Traceback (most recent call last):", "ValueError: no adapter"]
    assert cause_of(failed) == ""
    pointing = ["Process EngineCore:", "Traceback (most recent call last):", "RuntimeError: x. See root cause above."]
    assert cause_of(pointing) == ""


def test_a_cause_is_shortened():
    lines = ["Process EngineCore:", "Traceback (most recent call last):", "ValueError: " + "x" * 5000]
    assert len(cause_of(lines)) == LONGEST_CAUSE
