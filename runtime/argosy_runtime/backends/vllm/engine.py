"""The engine: vLLM's `AsyncLLM` on a loop of its own, with what is asked of it as a whole."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from argosy_runtime.backends.contract import Host, InstanceSpec
from argosy_runtime.errors import ServingError, internal, invalid, unsupported
from argosy_runtime.failures.translation import failure

from .adapters import adapter_paths, lora_arguments
from .loop import EngineLoop
from .opening.arguments import engine_arguments, is_pooling, parameter_names, split_unknown
from .opening.checkpoint import check_checkpoint
from .opening.library import Library
from .opening.memory import gpu_bytes, memory_arguments
from .output import ProcessOutput
from .reports import EngineReports, stat_logger_class
from .sleep import check_host_memory

SHUTDOWN_SECONDS: Final = 5.0
"""Seconds in which the processes of an engine without requests end by themselves."""


class Engine:
    """A started engine. `arguments` are those that it was started with; `output` is that of its processes."""

    def __init__(
        self, library: Library, llm: Any, loop: EngineLoop, arguments: Mapping[str, Any], output: ProcessOutput
    ) -> None:
        self.library = library
        self.llm = llm
        self.loop = loop
        self.output = output
        self.arguments = arguments
        self.model_config = llm.model_config
        self.longest = int(self.model_config.max_model_len)
        self.is_pooling = is_pooling(arguments)

    @property
    def has_priorities(self) -> bool:
        """Whether requests run in the order of their priorities."""
        return self.arguments.get("scheduling_policy") == "priority"

    def check_sleep(self, instance: str) -> None:
        """Raise ServingError where the engine cannot sleep (UNSUPPORTED), or the host has no memory for its weights."""
        if not self.arguments.get("enable_sleep_mode"):
            raise unsupported("the engine cannot sleep: start it with 'enable_sleep_mode', which needs a GPU")
        check_host_memory(instance, Path(self.arguments["model"]))

    def close(self) -> None:
        """End the engine and its loop."""
        self.loop.run(_shut_down(self.llm))
        self.loop.stop()
        self.output.pass_on()


def start_engine(spec: InstanceSpec, host: Host, library: Library, reports: EngineReports | None) -> Engine:
    """Start an engine, which takes from half a minute to many. Raises ServingError with vLLM's reason."""
    arguments = _arguments(spec, host, library)
    check_checkpoint(spec.config.name, Path(arguments["model"]))
    loggers = [] if reports is None else [stat_logger_class(library.PrometheusStatLogger, reports)]
    loop, output = EngineLoop(f"{spec.name}-engine"), ProcessOutput()
    try:
        with output.capture():
            llm = loop.run(_start(library, arguments, loggers))
        library.enable_envs_cache()  # it reads them for every token otherwise
    except BaseException as error:
        loop.stop()
        if isinstance(error, ServingError) or not isinstance(error, Exception | SystemExit):
            raise
        raise _refusal(spec, error, output.cause()) from error
    return Engine(library, llm, loop, arguments, output)


def most_adapters(spec: InstanceSpec) -> int:
    """Return how many adapters a model may use at once, 0 for a model without."""
    arguments = engine_arguments(spec.config, spec.version_dir)
    paths = adapter_paths(spec.config, spec.version_dir)
    lora = {**arguments, **lora_arguments(arguments, paths, on_cpu=spec.kind == "KIND_CPU")}
    return int(lora.get("max_loras", 1)) if lora.get("enable_lora") else 0


def _arguments(spec: InstanceSpec, host: Host, library: Library) -> dict[str, Any]:
    declared = engine_arguments(spec.config, spec.version_dir)
    arguments, unknown = split_unknown(declared, library.argument_names, parameter_names(spec.config))
    for name in unknown:
        host.log(
            "warning", f"model instance '{spec.name}': parameter '{name}' is no argument of vLLM's, so it is unused"
        )
    paths = adapter_paths(spec.config, spec.version_dir)
    arguments.update(lora_arguments(arguments, paths, on_cpu=spec.kind == "KIND_CPU"))
    arguments.update(memory_arguments(spec, arguments, os.environ, gpu_bytes))
    # The statistics go to this server's metrics; vLLM's own loggers would make them a second time.
    arguments["disable_log_stats"] = True
    arguments["enable_log_requests"] = False
    return arguments


async def _start(library: Library, arguments: dict[str, Any], loggers: list[Any]) -> Any:
    """Start the engine on the running loop, which has nothing else to do yet."""
    return library.AsyncLLM.from_engine_args(library.AsyncEngineArgs(**arguments), stat_loggers=loggers)


async def _shut_down(llm: Any) -> None:
    llm.shutdown(timeout=SHUTDOWN_SECONDS)


def with_cause(text: str, cause: str) -> str:
    """Return the text of an error with the cause that a process of the engine gave, "" where it gave none."""
    return f"{text}; cause: {cause}" if cause else text


def _refusal(spec: InstanceSpec, error: BaseException, cause: str) -> ServingError:
    about = f"failed to load '{spec.config.name}' version {spec.version}: {type(error).__name__}: {error}"
    text = with_cause(about, cause)
    if isinstance(error, ValueError | TypeError):
        return invalid(text)
    return failure(text, error) if isinstance(error, Exception) else internal(text)
