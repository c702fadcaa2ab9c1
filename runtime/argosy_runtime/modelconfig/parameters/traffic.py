"""Traffic of a model's versions: how requests that name no version are divided among the loaded ones.

The parameter `version_traffic` of a configuration: a JSON object with the fields of `VersionTraffic`, such as
`{"weights": {"1": 950000, "2": 50000}}`. Triton has no such parameter; without it the highest version answers.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.modelconfig.errors import ConfigError, Violation

PARAMETER: Final = "version_traffic"
MILLIONTHS: Final = 1_000_000
"""The sum of the weights, which are millionths of the requests."""
MAX_VERSIONS: Final = 16
"""The most versions with a weight: each has its own series of metrics."""
MAX_STICKY: Final = 8
"""The most keys: each is looked up in every request."""


class Sticky(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A key of requests: those with the same value of it are answered by the same version.

    `header`: a header over HTTP, a metadata key over gRPC, in lower case. `parameter`: a parameter of the request; over
    OpenAI's API a field of the body, such as `user`. Exactly one of them is set.
    """

    header: str = ""
    parameter: str = ""


class OutputTolerance(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """How far an output of the shadow may be from the stable version's.

    An element agrees within `absolute + relative * |stable|`. `top1_agreement`: the share (0 to 1) of the rows of all
    requests whose largest element must have the same index; elements are then compared only if `absolute` or `relative`
    is set. BYTES are always compared exactly.
    """

    output: str
    absolute: float = 0.0
    relative: float = 0.0
    top1_agreement: float | None = None


class Shadow(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """A version that is sent copies of requests, whose responses are compared and dropped.

    `share`: millionths of the requests without a version that the stable version answers. `max_in_flight`: the most
    copies at a time; requests beyond it are not copied.
    """

    version: int
    share: int
    tolerances: tuple[OutputTolerance, ...] = ()
    max_in_flight: int = 8


class VersionTraffic(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """The division of the requests that name no version.

    `weights`: millionths by version, of sum `MILLIONTHS`. `sticky`: the first key that a request has decides; requests
    without any of them, and without a sequence id, are interleaved.
    """

    weights: dict[int, int]
    sticky: tuple[Sticky, ...] = ()
    shadow: Shadow | None = None

    @property
    def stable(self) -> int:
        """The version with the highest weight; of several the one that is listed first."""
        return max(self.weights, key=self.weights.__getitem__)

    @property
    def order(self) -> tuple[int, ...]:
        """The versions by falling weight, those of the same weight as listed."""
        return tuple(sorted(self.weights, key=lambda version: -self.weights[version]))


def version_traffic(config: ModelConfig) -> VersionTraffic | None:
    """Return the division of a model's requests; None without the parameter. Raises ConfigError."""
    if PARAMETER not in config.parameters:
        return None
    return parse_traffic(config.parameters[PARAMETER].string_value, config.name)


def parse_traffic(text: str, model: str) -> VersionTraffic:
    """Return the division that the text of the parameter declares. Raises ConfigError that names the way out."""
    try:
        traffic = msgspec.json.decode(text, type=VersionTraffic)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"parameter '{PARAMETER}' of model '{model}' cannot be read: {error}; expected JSON such as "
            '{"weights": {"1": 950000, "2": 50000}}'
        ) from None
    for problem in _problems(traffic):
        raise ConfigError(f"parameter '{PARAMETER}' of model '{model}': {problem}")
    return traffic


def traffic_text(traffic: VersionTraffic) -> str:
    """Return the division as the text of the parameter."""
    return msgspec.json.encode(traffic).decode()


def check_traffic(config: ModelConfig) -> Iterator[Violation]:
    """Check the parameter of a configuration."""
    try:
        version_traffic(config)
    except ConfigError as error:
        yield Violation(f'parameters["{PARAMETER}"]', str(error))


def _problems(traffic: VersionTraffic) -> Iterator[str]:
    yield from _weight_problems(traffic.weights)
    yield from _sticky_problems(traffic.sticky)
    if traffic.shadow is not None:
        yield from _shadow_problems(traffic.shadow, traffic.stable)


def _weight_problems(weights: Mapping[int, int]) -> Iterator[str]:
    if not 1 <= len(weights) <= MAX_VERSIONS:
        yield f"weights has {len(weights)} versions; list 1 to {MAX_VERSIONS}"
        return
    for version, weight in weights.items():
        if version < 1:
            yield f"weights names version {version}; versions are numbers from 1"
        if weight < 0:
            yield f"weights[{version}] is {weight}; a weight is 0 to {MILLIONTHS} millionths"
    if sum(weights.values()) != MILLIONTHS:
        yield f"the weights add up to {sum(weights.values())}; they are millionths and must add up to {MILLIONTHS}"


def _sticky_problems(sticky: tuple[Sticky, ...]) -> Iterator[str]:
    if len(sticky) > MAX_STICKY:
        yield f"sticky has {len(sticky)} keys; at most {MAX_STICKY} are possible"
    if len(set(sticky)) < len(sticky):
        yield "sticky lists a key twice; list each once"
    for index, key in enumerate(sticky):
        if bool(key.header) == bool(key.parameter):
            yield f"sticky[{index}] must have either header or parameter"
        if key.header != key.header.lower() or not key.header.isascii():
            yield f"sticky[{index}].header is '{key.header}'; write the header's name in lower case"


def _shadow_problems(shadow: Shadow, stable: int) -> Iterator[str]:
    if shadow.version < 1:
        yield f"shadow.version is {shadow.version}; versions are numbers from 1"
    if shadow.version == stable:
        yield f"shadow.version is {stable}, which has the highest weight; name the version that is to be compared to it"
    if not 0 < shadow.share <= MILLIONTHS:
        yield f"shadow.share is {shadow.share}; a share is 1 to {MILLIONTHS} millionths; leave shadow out for none"
    if shadow.max_in_flight < 1:
        yield f"shadow.maxInFlight is {shadow.max_in_flight}; it must be at least 1"
    outputs = [tolerance.output for tolerance in shadow.tolerances]
    if len(set(outputs)) < len(outputs):
        yield "shadow.tolerances lists an output twice; list each once"
    for index, tolerance in enumerate(shadow.tolerances):
        yield from _tolerance_problems(f"shadow.tolerances[{index}]", tolerance)


def _tolerance_problems(path: str, tolerance: OutputTolerance) -> Iterator[str]:
    if not tolerance.output:
        yield f"{path}.output is empty; name an output of the model"
    for field, value in (("absolute", tolerance.absolute), ("relative", tolerance.relative)):
        if value < 0:
            yield f"{path}.{field} is {value:g}; a tolerance must not be negative"
    if tolerance.top1_agreement is not None and not 0 <= tolerance.top1_agreement <= 1:
        yield f"{path}.top1Agreement is {tolerance.top1_agreement:g}; a share is 0 to 1"


__all__ = [
    "MAX_STICKY",
    "MAX_VERSIONS",
    "PARAMETER",
    "MILLIONTHS",
    "OutputTolerance",
    "Shadow",
    "Sticky",
    "VersionTraffic",
    "check_traffic",
    "parse_traffic",
    "traffic_text",
    "version_traffic",
]
