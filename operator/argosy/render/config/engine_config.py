"""The part of a model's configuration about its engine: the name of its file, and what TensorRT needs to serve it.

`spec.config` names the files that the model comes as; none of these is left in an engine's folder.
"""

from collections.abc import Mapping
from typing import Any

from tritonclient.grpc import model_config_pb2 as pb

from argosy.api.engine.engine import Builder
from argosy.api.inferencemodel import InferenceModel

ENGINE_FILES = {Builder.TENSORRT: "model.plan", Builder.AOTINDUCTOR: "model.pt2"}
"""What a builder calls the file that it makes, where it is not the name that the model's own file has."""
PLATFORMS = {Builder.AOTINDUCTOR: "torch_aoti"}
"""What Triton tells the kinds of one backend's files apart by."""
VERSION_COMPATIBLE = "VERSION_COMPATIBLE"
"""What the bundled server's TensorRT backend reads: a plan may run code that it brings."""


def name_engine(config: pb.ModelConfig, model: InferenceModel) -> None:
    """Write the name of the engine that serves a model. A parameter that `spec.config` sets stays."""
    engine = model.spec.engine
    if engine is None:
        return
    if engine.builder is Builder.TENSORRT_LLM:
        config.ClearField("default_model_filename")
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
