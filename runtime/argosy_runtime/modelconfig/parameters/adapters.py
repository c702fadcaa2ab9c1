"""Adapters: models that are another model of the server with LoRA weights of their own.

An adapter in a repository has the backend `adapter`, the parameter `base` with the name of that model, and in its
version's folder the files of the adapter. Triton has no such backend. Otherwise a model lists its adapters itself, in
its parameter `adapters` or in `multi_lora.json` in its version's folder, as Triton's backend for vLLM has it.
"""

import re
from collections.abc import Sequence

import msgspec
from google.protobuf import text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.modelconfig.errors import ConfigError

BACKEND = "adapter"
PARAMETER = "base"
LORA_NAME, SAMPLING = "lora_name", "sampling_parameters"
"""The input of a language model that names the adapter to apply, and the one whose JSON object may name it."""
LIST = "adapters"
"""The parameter in which a model lists adapters: a JSON list of `DeclaredAdapter`."""
MULTI_LORA_JSON = "multi_lora.json"
RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""The ranks that vLLM reserves memory for: the values of its `max_lora_rank`."""
LEAST_RESERVED = 16
"""The rank that is reserved for smaller ones too, as vLLM does by default."""
_NAMES = re.compile(rf"backend\W+{BACKEND}\b")


class DeclaredAdapter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An adapter in a model's list. `path`: its folder, perhaps relative to the version's.

    `alias`: another name, which several adapters may share; its requests are divided among them by `weight`.
    """

    name: str
    path: str
    alias: str | None = None
    weight: int | None = None

    @property
    def share(self) -> int:
        """Its share of the requests for its alias, in proportion to the others'."""
        return 1 if self.weight is None else self.weight


def listed_adapters(config: ModelConfig, multi_lora: bytes | None = None) -> tuple[DeclaredAdapter, ...]:
    """Return the adapters that a model lists; those of its parameter replace those of `multi_lora.json`, by name.

    Raises ConfigError.
    """
    adapters = {} if multi_lora is None else _of_file(config.name, multi_lora)
    text = config.parameters[LIST].string_value if LIST in config.parameters else ""
    try:
        own = msgspec.json.decode(text or "[]", type=tuple[DeclaredAdapter, ...])
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"model '{config.name}': parameter '{LIST}' is not a JSON list of objects with 'name' and 'path': {error}"
        ) from None
    problem = _problem(config.name, own, set(adapters))
    if problem:
        raise ConfigError(f"model '{config.name}': parameter '{LIST}': {problem}")
    return tuple({**adapters, **{adapter.name: adapter for adapter in own}}.values())


def aliases(adapters: Sequence[DeclaredAdapter]) -> dict[str, list[DeclaredAdapter]]:
    """Return the adapters of each alias."""
    shared: dict[str, list[DeclaredAdapter]] = {}
    for adapter in adapters:
        if adapter.alias is not None:
            shared.setdefault(adapter.alias, []).append(adapter)
    return shared


def config_text(base: str) -> str:
    """Return the configuration of an adapter of a model, as a repository would have it."""
    config = ModelConfig(backend=BACKEND)
    config.parameters[PARAMETER].string_value = base
    return text_format.MessageToString(config)


def _of_file(model: str, multi_lora: bytes) -> dict[str, DeclaredAdapter]:
    try:
        paths = msgspec.json.decode(multi_lora, type=dict[str, str])
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"model '{model}': '{MULTI_LORA_JSON}' is not a JSON object of adapters' paths by name: {error}"
        ) from None
    return {name: DeclaredAdapter(name, path) for name, path in paths.items()}


def _problem(model: str, adapters: Sequence[DeclaredAdapter], others: set[str]) -> str:
    names = [adapter.name for adapter in adapters]
    for name in names:
        if names.count(name) > 1:
            return f"there are two adapters '{name}'; rename one"
    for adapter in adapters:
        for other in (adapter.name, adapter.alias):
            if other is not None and (other in ("", ".", "..", model) or "/" in other or "\0" in other):
                return f"'{other}' cannot be the name of an adapter; choose another than the model's, without '/'"
        if adapter.weight is not None and adapter.weight < 0:
            return f"the weight of adapter '{adapter.name}' is {adapter.weight}; it must be 0 or more"
    for alias, shared in aliases(adapters).items():
        if alias in {*names, *others}:
            return f"alias '{alias}' is the name of an adapter; choose another"
        if not sum(adapter.share for adapter in shared):
            return f"all adapters of alias '{alias}' have weight 0; raise one"
    return ""


def is_adapter(config: ModelConfig) -> bool:
    """Return whether a model is an adapter of another one."""
    return bool(config.backend == BACKEND)


def may_be_adapter(text: str) -> bool:
    """Return whether the text of a configuration may be that of an adapter."""
    return _NAMES.search(text) is not None


def reserved_rank(rank: int) -> int:
    """Return the rank for which an engine reserves memory, so that it takes adapters of this rank.

    One larger than all that vLLM takes is returned as it is, for vLLM to refuse.
    """
    return next((possible for possible in RANKS if possible >= max(rank, LEAST_RESERVED)), rank)


def base_of(config: ModelConfig) -> str:
    """Return the model that an adapter belongs to. Raises ConfigError."""
    base = str(config.parameters[PARAMETER].string_value) if PARAMETER in config.parameters else ""
    if not base or base == config.name:
        raise ConfigError(f"adapter '{config.name}' needs the parameter '{PARAMETER}' with the name of its base model")
    return base
