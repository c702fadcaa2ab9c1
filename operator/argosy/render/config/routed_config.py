"""A model with variants becomes a ModelConfig without files: the bundled server chooses a variant for each request."""

from collections.abc import Mapping

from tritonclient.grpc import model_config_pb2 as pb

from argosy.api.values.quantity import THOUSANDTHS
from argosy.planning.variants import RoutedModel
from argosy.render.config.model_config import add_chat, specific
from argosy.render.config.tensors import tensor_input, tensor_output
from argosy_runtime.modelconfig.parameters import variants

_MS = 1e3


def routed_config(model: RoutedModel, pins: Mapping[str, int], served_names: Mapping[str, str]) -> pb.ModelConfig:
    """Return the config of a routed model whose variants run the versions `pins`, by model name.

    `served_names`: what clients call a variant's model that is declared under another name. Raises KeyError for a
    variant without a pin, unless variants have replicas of their own: then the server has those with a pin.
    """
    spec = model.spec
    steps = [step for step in spec.steps if step.model in pins or not model.is_separate]
    config = pb.ModelConfig(
        name=model.served_name,
        backend=variants.BACKEND,
        max_batch_size=spec.max_batch_size,
        version_policy=specific([spec.version]),
        input=[tensor_input(tensor) for tensor in spec.inputs],
        output=[tensor_output(tensor) for tensor in spec.outputs],
    )
    routing = variants.VariantRouting(
        variants=tuple(
            variants.Variant(
                served_names.get(step.model, step.model),
                pins[step.model],
                model.limits.get(step.model),
                model.weights.get(step.model),
            )
            for step in steps
        ),
        hysteresis=spec.routing.hysteresis / THOUSANDTHS,
        min_dwell_seconds=spec.routing.min_dwell / _MS,
        idle_timeout_seconds=spec.routing.idle_timeout / _MS,
    )
    config.parameters[variants.PARAMETER].string_value = variants.routing_text(routing)
    add_chat(config, spec.chat)
    return config
