"""An Ensemble becomes a ModelConfig, every step pinned to the version that was placed with it."""

from collections.abc import Mapping

from google.protobuf import json_format
from tritonclient.grpc import model_config_pb2 as pb

from argosy.api.ensemble import Ensemble, Step
from argosy.planning.variants import RoutedModel
from argosy.render.config.model_config import add_chat, overlay, specific
from argosy.render.config.routed_config import routed_config
from argosy.render.config.tensors import tensor_input, tensor_output


def ensemble_config(
    ensemble: Ensemble, pins: Mapping[str, int], served_names: Mapping[str, str] | None = None
) -> pb.ModelConfig:
    """Return the config of an ensemble whose steps run the versions `pins`, by model name; what its `spec.config` says
    added.

    `served_names`: what clients call a step's model that is declared under another name.

    Pinned steps make it one unit: a step's new version reaches requests when the ensemble's own config does,
    and then for all its steps at once. Raises KeyError for a step without a pin.
    """
    if isinstance(ensemble, RoutedModel):
        return routed_config(ensemble, pins, served_names or {})
    spec = ensemble.spec
    config = pb.ModelConfig(
        name=ensemble.served_name,
        platform="ensemble",
        max_batch_size=spec.max_batch_size,
        version_policy=specific([spec.version]),
        input=[tensor_input(tensor) for tensor in spec.inputs],
        output=[tensor_output(tensor) for tensor in spec.outputs],
        ensemble_scheduling=pb.ModelEnsembling(
            step=[_step(step, pins, served_names or {}) for step in spec.steps],
            max_inflight_requests=spec.max_inflight_requests or 0,
        ),
    )
    add_chat(config, spec.chat)
    overlay(config, json_format.ParseDict(spec.config, pb.ModelConfig()))
    return config


def _step(step: Step, pins: Mapping[str, int], served_names: Mapping[str, str]) -> pb.ModelEnsembling.Step:
    return pb.ModelEnsembling.Step(
        model_name=served_names.get(step.model, step.model),
        model_version=pins[step.model],
        input_map=dict(step.inputs),
        output_map=dict(step.outputs),
    )
