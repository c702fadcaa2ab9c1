"""The part of a model's configuration about its engine: the name and folder of its file, and its server's parameters.

`spec.config` names the files that the model comes as; none of these is left in an engine's folder.
"""

from collections.abc import Collection, Mapping
from typing import Any

from tritonclient.grpc import model_config_pb2 as pb

from argosy.api.engine.engine import Builder, Engine
from argosy.api.inferencemodel import InferenceModel
from argosy_agent.contract.engine_options.tensorrt_llm import SERVING

ENGINE_FILES = {Builder.TENSORRT: "model.plan", Builder.AOTINDUCTOR: "model.pt2"}
"""What a builder calls the file that it makes, where it is not the name that the model's own file has."""
PLATFORMS = {Builder.AOTINDUCTOR: "torch_aoti"}
"""What Triton tells the kinds of one backend's files apart by."""
POD_REPOSITORY = "/models/repository"
"""Where a server's Pod has its repository."""
VERSION_COMPATIBLE = "VERSION_COMPATIBLE"
"""What the bundled server's TensorRT backend reads: a plan may run code that it brings."""
ENGINE_PATH, BATCHING = "gpt_model_path", "gpt_model_type"
"""What NVIDIA's backend for TensorRT-LLM reads: the engine's folder, an absolute path, and how requests are joined."""


def name_engine(config: pb.ModelConfig, model: InferenceModel, versions: Collection[int]) -> None:
    """Write the path of the engine that serves a model. A parameter with one path gets that of the newest version.

    A parameter that `spec.config` sets stays.
    """
    engine = model.spec.engine
    if engine is None:
        return
    if engine.builder is Builder.TENSORRT_LLM:
        config.ClearField("default_model_filename")
        _parameter(config, BATCHING, "inflight_fused_batching")
        if versions:
            _parameter(config, ENGINE_PATH, f"{POD_REPOSITORY}/{model.served_name}/{max(versions)}")
    elif engine.builder in ENGINE_FILES:
        config.default_model_filename = ENGINE_FILES[engine.builder]
        config.platform = PLATFORMS.get(engine.builder, config.platform)
        if engine.builder is Builder.TENSORRT:
            _serve_plan(config, engine.options)


def _serve_plan(config: pb.ModelConfig, options: Mapping[str, Any]) -> None:
    """Set what a TensorRT plan needs in addition to its name: leave to run what it brings, and every profile of its
    build.

    A server uses the first profile alone of a group that names none.
    """
    if options.get("version_compatible") is True:
        _parameter(config, VERSION_COMPATIBLE, "true")
    profiles = options.get("profiles") or ()
    for group in config.instance_group:
        if len(profiles) > 1 and not group.profile:
            group.profile.extend(str(index) for index in range(len(profiles)))


def _parameter(config: pb.ModelConfig, name: str, value: str) -> None:
    if name not in config.parameters:
        config.parameters[name].string_value = value


TOKENIZER = "tokenizer"


def engine_parameters(engine: Engine, name: str, versions: Collection[int]) -> Mapping[str, str]:
    """Return the `parameters` of `config.pbtxt` for a model called `name`, as texts; none of what
    other backends serve.
    """
    if engine.builder is not Builder.TENSORRT_LLM or not versions:
        return {}
    parameters = {option: _text(value) for option, value in sorted(engine.options.items()) if option in SERVING}
    width = engine.options.get("max_beam_width")
    return {
        "tokenizer_dir": f"{POD_REPOSITORY}/{name}/{max(versions)}/{TOKENIZER}",
        **({} if width is None else {"max_beam_width": _text(width)}),
        **parameters,
    }


def _text(value: Any) -> str:
    """Return a value as the backend reads it: flags in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)
