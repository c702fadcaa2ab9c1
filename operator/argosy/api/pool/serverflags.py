"""Settings of servers of both runtimes: flags, the rate limiter, the response cache."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, ClassVar

from pydantic import Field, StringConstraints

from argosy.api.values.base import ApiModel, Fault, Int, Rule
from argosy.api.values.quantity import Quantity

FLAG = r"^--[a-z][-a-z0-9]*(=.*)?$"
RATE_LIMIT_RESOURCE = r"^[^:\s]+$"
_ADDRESS = "clients and probes reach the server there"
_AGENT = "the agent brings models over it"
_PLAIN = "agents, the operator and probes use that port without TLS; a service mesh encrypts it between Pods"
_TOKEN = "each server has a token of its own, which only its agent knows"
OWN_FLAGS: Mapping[str, str] = {
    "model-repository": "models are declared as InferenceModels",
    "model-store": "models are declared as InferenceModels",
    "model-control-mode": "the agent loads and unloads models",
    "load-model": "models are declared as InferenceModels",
    "load-on-demand": "the agent loads and unloads models",
    "strict-readiness": "which models may be asked for is decided for each of them",
    "exit-timeout-secs": "it goes with the Pod's grace period",
    "drain-quiet-secs": "it goes with the Pod's grace period",
    "drain-timeout-secs": "it goes with the Pod's grace period",
    **{f"{front}-port": _ADDRESS for front in ("http", "grpc", "metrics")},
    **{f"{front}-address": _ADDRESS for front in ("http", "grpc", "metrics")},
    **{f"allow-{front}": _ADDRESS for front in ("http", "grpc", "metrics")},
    **{f"{front}-use-ssl": _PLAIN for front in ("http", "metrics")},
    **{f"{front}-use-ssl-mutual": _PLAIN for front in ("http", "metrics")},
    "openai-port": _ADDRESS,
    "openai-address": _ADDRESS,
    "control-token-file": _TOKEN,
    "http-restricted-api": _AGENT,
    "grpc-restricted-protocol": _AGENT,
    "rate-limit": "set spec.rateLimit",
    "rate-limit-resource": "set spec.rateLimit.resources",
    "cache-config": "set spec.cache",
}
"""Flags that are not a pool's to give, and why, or what to set instead."""

Arguments = tuple[Annotated[str, StringConstraints(pattern=FLAG, max_length=1024)], ...]


def check_arguments(arguments: Sequence[str]) -> Iterator[Fault]:
    """Yield an error for each flag that Argosy sets, or a prefix of one, which the servers accept too."""
    for index, argument in enumerate(arguments):
        flag = argument.removeprefix("--").partition("=")[0]
        for name, reason in OWN_FLAGS.items():
            if name.startswith(flag):
                yield Fault(f"--{name} is not a pool's to give: {reason}", ("args", index))
                break


ARGUMENTS_CEL = f"!has(self.args) || self.args.all(arg, !arg.matches('^--({'|'.join(OWN_FLAGS)})(=|$)'))"
"""The same for the API server, of names in full."""


class RateLimitResource(ApiModel):
    """A resource that instances need while they run."""

    name: Annotated[str, StringConstraints(pattern=RATE_LIMIT_RESOURCE, min_length=1, max_length=64)] = Field(
        description="The resource's name, as in models' rateLimiter."
    )
    count: Int = Field(ge=1, le=1_000_000, description="The amount of the resource.")
    device: Int | None = Field(
        default=None, ge=0, le=63, description="The GPU that has it, by the server's own numbering. Default: every GPU."
    )


def _listed_once(limit: "RateLimit") -> Iterator[Fault]:
    seen: set[tuple[str, int | None]] = set()
    for index, resource in enumerate(limit.resources):
        key = (resource.name, resource.device)
        if key in seen:
            yield Fault(f"{resource.name!r} is counted already for that device; keep one", ("resources", index))
        seen.add(key)


class RateLimit(ApiModel):
    """Instances run only while the resources that their models request are free."""

    resources: tuple[RateLimitResource, ...] = Field(
        default=(),
        max_length=64,
        description="The amount of each resource. Default: the most that one instance requests.",
    )

    rules: ClassVar[tuple[Rule, ...]] = (Rule(("resources",), _listed_once),)


class ResponseCache(ApiModel):
    """The cache of responses of models that enable it."""

    size: Annotated[Quantity, Field(ge=1)] = Field(
        description="Host memory of each server for the cache, such as 256Mi."
    )


def setting_flags(rate_limit: RateLimit | None, cache: ResponseCache | None) -> list[str]:
    """Return the settings as flags of both runtimes."""
    flags: list[str] = []
    if rate_limit is not None:
        flags.append("--rate-limit=execution_count")
        flags += [f"--rate-limit-resource={_resource_text(resource)}" for resource in rate_limit.resources]
    if cache is not None:
        flags.append(f"--cache-config=local,size={cache.size}")
    return flags


def _resource_text(resource: RateLimitResource) -> str:
    text = f"{resource.name}:{resource.count}"
    return text if resource.device is None else f"{text}:{resource.device}"
