"""An InferenceModel and its place become a ModelConfig: what `config.pbtxt` says."""

import json
from collections.abc import Collection
from dataclasses import dataclass

from google.protobuf import json_format, text_format
from tritonclient.grpc import model_config_pb2 as pb
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy.api.inferencemodel import InferenceModel
from argosy.api.model.batching.dynamic import Batching, QueuePolicy
from argosy.api.model.chat import Chat
from argosy.api.model.instancegroups import GroupKind, InstanceGroup
from argosy.api.model.modelformat import TREES
from argosy.api.servingpool import RuntimeName
from argosy.planning.adapters import AdapterModel
from argosy.planning.plan import Placement, ServerPlan
from argosy.render.config.engine_config import name_engine
from argosy.render.config.instance_groups import add_instance_groups
from argosy.render.config.language import batches_rows, language_parameters
from argosy.render.config.sequence import sequence_batching
from argosy.render.config.tensors import tensor_input, tensor_output
from argosy_runtime.modelconfig.parameters import adapters
from argosy_runtime.modelconfig.parameters.chat import PARAMETER as CHAT


@dataclass(frozen=True, slots=True)
class Devices:
    """Where a model sits in its server, and which server that is: ours or NVIDIA's. `gpus` count from 0 among the
    server's own; empty means its CPU. `divided`: each GPU has `instances` of its own; else one takes all GPUs.
    """

    gpus: tuple[int, ...] = ()
    instances: int = 1
    runtime: RuntimeName = RuntimeName.ARGOSY
    divided: bool = False


def local_devices(placement: Placement, server: ServerPlan, runtime: RuntimeName) -> Devices:
    """Return the placement's GPUs as the server counts them: CUDA_VISIBLE_DEVICES leaves it its own, from 0."""
    gpus = tuple(server.gpus.index(gpu) for gpu in placement.gpus)
    return Devices(gpus, placement.instances, runtime, placement.shares > 1)


def model_config(model: InferenceModel, devices: Devices, versions: Collection[int]) -> pb.ModelConfig:
    """Return the whole config of one model that serves `versions`.

    `spec.config` has the last word, field by field, but on what an engine's files are called.
    """
    if isinstance(model, AdapterModel):
        return _adapter_config(model, versions)
    spec = model.spec
    config = pb.ModelConfig(
        name=model.served_name,
        backend=spec.backend,
        # absent: the backend completes it
        max_batch_size=(spec.max_batch_size or 0) if batches_rows(spec, devices.runtime) else 0,
        version_policy=specific(versions),
        input=[tensor_input(tensor) for tensor in spec.inputs],
        output=[tensor_output(tensor) for tensor in spec.outputs],
    )
    if spec.batching is not None:
        config.dynamic_batching.CopyFrom(_batching(spec.batching))
    if spec.sequence is not None:
        config.sequence_batching.CopyFrom(sequence_batching(spec.sequence))
    kind = GroupKind.GPU if devices.divided else GroupKind.AUTO
    default = InstanceGroup(kind=kind, count=min(devices.instances, 256))
    add_instance_groups(config, spec, devices.gpus, default, devices.runtime)
    for name, value in language_parameters(model, versions, devices.gpus, devices.runtime).items():
        config.parameters[name].string_value = value
    if spec.backend == TREES:
        # Triton's backend wants a threshold of classifiers, and has no use for it otherwise.
        config.parameters["model_type"].string_value = spec.model_format.name
        config.parameters["threshold"].string_value = "0.5"
    add_chat(config, spec.chat)
    overlay(config, json_format.ParseDict(spec.config, pb.ModelConfig()))
    name_engine(config, model)
    return config


def _adapter_config(adapter: AdapterModel, versions: Collection[int]) -> pb.ModelConfig:
    config = pb.ModelConfig(name=adapter.served_name, backend=adapters.BACKEND, version_policy=specific(versions))
    config.parameters[adapters.PARAMETER].string_value = adapter.base_served_name
    return config


def add_chat(config: pb.ModelConfig, chat: Chat | None) -> None:
    """Add the tensors of a chat, as the parameter that the bundled server reads."""
    if chat is not None:
        config.parameters[CHAT].string_value = json.dumps(chat.names)


def specific(versions: Collection[int]) -> pb.ModelVersionPolicy:
    """Return the policy that serves exactly these versions."""
    return pb.ModelVersionPolicy(specific=pb.ModelVersionPolicy.Specific(versions=sorted(versions)))


def overlay(config: pb.ModelConfig, more: pb.ModelConfig) -> None:
    """Apply what `more` sets to `config`: lists are replaced, messages and maps merged, the rest set."""
    for field, _ in more.ListFields():
        is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
        if field.is_repeated and not is_map:
            config.ClearField(field.name)
    config.MergeFrom(more)


def _batching(batching: Batching) -> pb.ModelDynamicBatching:
    rendered = pb.ModelDynamicBatching(
        preferred_batch_size=batching.preferred_batch_sizes,
        max_queue_delay_microseconds=batching.max_queue_delay_microseconds,
        preserve_ordering=batching.preserve_ordering,
        priority_levels=batching.priority_levels,
        default_priority_level=batching.default_priority_level,
        priority_queue_policy={
            level: _queue_policy(policy) for level, policy in batching.priority_queue_policies.items()
        },
    )
    if batching.queue_policy is not None:
        rendered.default_queue_policy.CopyFrom(_queue_policy(batching.queue_policy))
    return rendered


def _queue_policy(policy: QueuePolicy) -> pb.ModelQueuePolicy:
    return pb.ModelQueuePolicy(
        timeout_action=pb.ModelQueuePolicy.TimeoutAction.Value(policy.timeout_action),
        default_timeout_microseconds=policy.default_timeout_microseconds,
        allow_timeout_override=policy.allow_timeout_override,
        max_queue_size=policy.max_queue_size,
    )


def config_text(config: ModelConfig) -> str:
    """Return `config` as the text of a config.pbtxt.

    The same message always gives the same bytes: maps are in key order.
    """
    text: str = text_format.MessageToString(config, use_index_order=True, use_short_repeated_primitives=True)
    return text
