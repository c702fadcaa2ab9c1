"""The flags of the response cache, the rate limiter and host policies, with tritonserver's words for wrong ones."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from argosy_runtime.backends.contract import HostPolicy
from argosy_runtime.scheduling.limits.resources import ResourceLimit

from .values import memory_bytes, natural, size

_LOCAL: Final = "local"
_DEFAULT_CACHES: Final = "/opt/tritonserver/caches"
_DEPRECATED: Final = (
    "Warning: '--response-cache-byte-size' has been deprecated! This will default to the 'local' cache implementation "
    "with the provided byte size for its config. Please use '--cache-config' instead. The equivalent --cache-config "
    "CLI args would be: '--cache-config=local,size={}'"
)
_MODES: Final = ("execution_count", "off")
Setting = tuple[str, str, str]


def add_scheduling_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    add = parser.add_argument
    cache = "local,size=<bytes>: keep responses of models whose configuration enables response_cache"
    add(
        "--cache-config",
        action="append",
        default=[],
        type=cache_setting,
        metavar="<cache>,<setting>=<value>",
        help=cache,
    )
    add(
        "--response-cache-byte-size",
        type=size,
        metavar="BYTES",
        help="the older name of --cache-config=local,size=BYTES",
    )
    add("--cache-directory", help="without effect: the one cache, local, is built in")
    limit = "execution_count: instances run when the resources of their rate_limiter are free, by priority"
    add("--rate-limit", type=rate_limit_mode, default="off", metavar="MODE", help=limit)
    resource = "how many of a resource there are; without a device, on each"
    add(
        "--rate-limit-resource",
        action="append",
        default=[],
        type=rate_limit_resource,
        metavar="<name>:<count>[:<device>]",
        help=resource,
    )
    add(
        "--pinned-memory-pool-byte-size",
        type=size,
        default=256 << 20,
        help="page-locked memory for copies to GPUs",
    )
    policy = "numa-node or cpu-cores (such as 0-3,8-11) of the instances with that host policy: cpu, gpu_<n>, model"
    add(
        "--host-policy",
        action="append",
        default=[],
        type=host_policy,
        metavar="<policy>,<setting>=<value>",
        help=policy,
    )


def cache_setting(text: str) -> Setting:
    """Parse `<cache>,<setting>=<value>`."""
    name, comma, rest = text.partition(",")
    if not (comma and name):
        raise argparse.ArgumentTypeError(
            f"No cache specified. --cache-config option format is <cache name>,<setting>=<value>. Got {text}"
        )
    setting, _, value = rest.partition("=")
    if not (setting and value):
        raise argparse.ArgumentTypeError(
            f"--cache-config option format is '<cache name>,<setting>=<value>'. Got {text}"
        )
    return name, setting, value


def cache_bytes(parser: argparse.ArgumentParser, values: argparse.Namespace) -> int:
    """Return the size of the response cache, 0 for none; end the process with a message where it is wrong."""
    settings: Sequence[Setting] = values.cache_config
    if values.response_cache_byte_size is not None:
        if settings:
            parser.error(
                "Error: Incompatible flags --response-cache-byte-size and --cache-config both provided. Please provide "
                "one or the other."
            )
        settings = [(_LOCAL, "size", str(values.response_cache_byte_size))]
        print(_DEPRECATED.format(values.response_cache_byte_size), file=sys.stderr)
    if not settings:
        return 0
    folder = values.cache_directory or _DEFAULT_CACHES
    if others := sorted({name for name, _, _ in settings} - {_LOCAL}):
        parser.error(
            f"unable to find 'libtritoncache_{others[0]}.so' for cache. Searched: {folder}: this "
            f"server has one cache, '{_LOCAL}', and loads no others"
        )
    sizes = [value for _, setting, value in settings if setting == "size"]
    if not sizes:
        parser.error("Failed to initialize LocalCache: config didn't contain a valid 'size' field.")
    try:
        size = memory_bytes(sizes[-1])
    except argparse.ArgumentTypeError as error:
        parser.error(f"Failed to initialize LocalCache: size {error}")
    if not size:
        parser.error("Failed to initialize LocalCache: a size of 0 bytes holds nothing")
    return size


def rate_limit_mode(text: str) -> str:
    """Parse the mode of the rate limiter, in any case."""
    if text.lower() not in _MODES:
        raise argparse.ArgumentTypeError("invalid argument for --rate-limit")
    return text.lower()


def rate_limit_resource(text: str) -> ResourceLimit:
    """Parse `<name>:<count>` or `<name>:<count>:<device>`."""
    name, *numbers = text.split(":")
    if len(numbers) not in (1, 2):
        raise argparse.ArgumentTypeError(
            "--rate-limit-resource option format is '<resource_name>:<count>:<device>' or '<resource_name>:<count>'. "
            f"Got {text}"
        )
    amount, *device = map(natural, numbers)
    return ResourceLimit(name, amount, device[0] if device else None)


def rate_limits(values: argparse.Namespace) -> tuple[ResourceLimit, ...] | None:
    """Return the resources of the flags; None where the rate limiter is off."""
    return tuple(values.rate_limit_resource) if values.rate_limit == "execution_count" else None


def host_policy(text: str) -> tuple[str, HostPolicy]:
    """Parse `<policy>,<setting>=<value>`."""
    name, comma, rest = text.partition(",")
    setting, equals, value = rest.partition("=")
    if not (comma and equals and name and setting and value):
        raise argparse.ArgumentTypeError(
            f"--host-policy option format is '<policy name>,<setting>=<value>'. Got {text}"
        )
    match setting:
        case "numa-node":
            return name, HostPolicy(numa_node=_integer("Parsing 'numa-node' value", value))
        case "cpu-cores":
            return name, HostPolicy(cpu_cores=_cores(value))
    raise argparse.ArgumentTypeError(
        f"Unsupported host policy setting '{setting}' is specified, supported settings are 'numa-node', 'cpu-cores'"
    )


def _cores(text: str) -> tuple[int, ...]:
    """Return the cores of ranges such as `0-3,8-11`."""
    cores: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not dash:
            raise argparse.ArgumentTypeError(
                "host policy setting 'cpu-cores' format is '<lower_cpu_core_id>-<upper_cpu_core_id>'. Got " + part
            )
        lower, upper = (_integer("Parsing 'cpu-cores' value", number) for number in (first, last))
        cores.update(range(lower, min(upper, _MOST_CORES) + 1))
    if not cores:
        raise argparse.ArgumentTypeError(f"host policy setting 'cpu-cores' names no core: {text}")
    return tuple(sorted(cores))


# Linux knows no processor with a higher number.
_MOST_CORES: Final = 8191


def _integer(what: str, text: str) -> int:
    try:
        return size(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"{what}: Can't parse '{text}' to integer") from None


def host_policies(settings: Sequence[tuple[str, HostPolicy]]) -> Mapping[str, HostPolicy]:
    """Return the policies by name, each of all its settings; of equal settings the last one counts."""
    policies: dict[str, HostPolicy] = {}
    for name, policy in settings:
        policies[name] = policies.get(name, HostPolicy()).with_settings(policy)
    return policies
