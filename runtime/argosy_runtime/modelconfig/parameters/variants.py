"""Routed models: configurations whose model is served by one of several others, chosen by the requests in flight.

Such a model has the backend `variants`, no files of its own, and the parameter `variants`: a JSON object with the
fields of `VariantRouting`. Triton has no such backend.
"""

import re
from itertools import pairwise

import msgspec
from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.modelconfig.errors import ConfigError

BACKEND = "variants"
"""The backend of a routed model, which is the server itself."""
PARAMETER = "variants"
MAX_VARIANTS = 8
_NAMES = re.compile(rf"backend\W+{BACKEND}\b")


class Variant(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """One variant: a model of the same server, pinned to a version unless that is -1.

    `max_concurrency`: the most requests in flight for which it is the better choice; None if that is unknown.
    `weight`: its share of the requests, in proportion to the others'. Variants have weights, or are chosen by
    concurrency.
    """

    model: str
    version: int = -1
    max_concurrency: int | None = None
    weight: int | None = None


class VariantRouting(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The rules by which a routed model chooses, the variants for the fewest requests in flight first.

    `hysteresis`: the share (0 to 1) below a variant's `max_concurrency` at which requests go back to it.
    `min_dwell_seconds`: the shortest time between two changes. `idle_timeout_seconds`: after that time without use a
    variant is put to sleep; 0 means never.
    """

    variants: tuple[Variant, ...]
    hysteresis: float = 0.1
    min_dwell_seconds: float = 1.0
    idle_timeout_seconds: float = 600.0

    @property
    def limits(self) -> tuple[int, ...] | None:
        """The crossovers: for each variant but the last its `max_concurrency`; None if any of them is unknown."""
        declared = [variant.max_concurrency for variant in self.variants[:-1]]
        limits = tuple(limit for limit in declared if limit is not None)
        return limits if len(limits) == len(declared) else None

    @property
    def weights(self) -> tuple[int, ...] | None:
        """The weights of the variants; None where they are chosen by concurrency."""
        weights = tuple(variant.weight for variant in self.variants if variant.weight is not None)
        return weights or None


def is_routed(config: ModelConfig) -> bool:
    """Return whether a model is served by variants."""
    return bool(config.backend == BACKEND)


def may_be_routed(text: str) -> bool:
    """Return whether the text of a configuration may be that of a routed model."""
    return _NAMES.search(text) is not None


def variant_routing(config: ModelConfig) -> VariantRouting:
    """Return the rules of a routed model. Raises ConfigError."""
    text = config.parameters[PARAMETER].string_value if PARAMETER in config.parameters else ""
    try:
        routing = msgspec.json.decode(text, type=VariantRouting)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"parameter '{PARAMETER}' of model '{config.name}' is no list of variants: {error}") from None
    problem = _problem(routing, config.name)
    if problem:
        raise ConfigError(f"parameter '{PARAMETER}' of model '{config.name}': {problem}")
    return routing


def routing_text(routing: VariantRouting) -> str:
    """Return the rules as the text of the parameter."""
    return msgspec.json.encode(routing).decode()


def config_text(routing: VariantRouting) -> str:
    """Return the configuration of a routed model with these rules, as a repository would have it."""
    config = ModelConfig(backend=BACKEND)
    config.parameters[PARAMETER].string_value = routing_text(routing)
    return text_format.MessageToString(config)


def _problem(routing: VariantRouting, name: str) -> str:
    models = [variant.model for variant in routing.variants]
    if not 1 <= len(models) <= MAX_VARIANTS:
        return f"it has {len(models)} variants; 1 to {MAX_VARIANTS} are possible"
    if len(set(models)) < len(models) or name in models:
        return "each variant must be another model"
    if not 0 <= routing.hysteresis < 1:
        return f"hysteresis must be at least 0 and below 1, not {routing.hysteresis:g}"
    if routing.min_dwell_seconds < 0 or routing.idle_timeout_seconds < 0:
        return "minDwellSeconds and idleTimeoutSeconds must not be negative"
    weights = [variant.weight for variant in routing.variants if variant.weight is not None]
    if weights and (len(weights) < len(models) or min(weights) < 0 or not sum(weights)):
        return "either none or all variants have a weight of 0 or more, and one of them more than 0"
    limits = [variant.max_concurrency for variant in routing.variants if variant.max_concurrency is not None]
    if any(limit < 1 for limit in limits) or any(a >= b for a, b in pairwise(limits)):
        return "maxConcurrency must be at least 1 and grow from one variant to the next"
    return ""
