"""Parsers of the values of flags; each raises argparse.ArgumentTypeError where a value is wrong."""

import argparse
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from argosy_common.quantity import parse_bytes
from argosy_runtime.frontends.forwarding import HeaderForwarding
from argosy_runtime.frontends.restrictions import Api, Restriction, Restrictions, control_restrictions
from argosy_runtime.repository.options import BackendSetting

_GRPC_HEADER_PREFIX = "triton-grpc-protocol-"
_GROUPS = tuple(api for api in Api if api is not Api.MODEL_INDEX)
"""Triton's groups, in which the index is a part of the model repository, and OpenAI's API."""
_INTEGER: Final = re.compile(r"[+-]?\d+", re.ASCII)
_INT32: Final = 2**31
_INT64: Final = 2**63
_Number = TypeVar("_Number", int, float)
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]{16,}=*")


def backend_setting(text: str) -> BackendSetting:
    """Parse `<backend>,<setting>=<value>`, or `<setting>=<value>` for all backends."""
    try:
        return BackendSetting.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def http_restriction(text: str) -> Restrictions:
    """Parse `<api>,<api>…:<header>=<value>`: those groups of the API require that header."""
    return _restriction(text, "--http-restricted-api", "api")


def grpc_restriction(text: str) -> Restrictions:
    """Parse the same for gRPC, where the metadata's key is a prefix and the header."""
    restrictions = _restriction(text, "--grpc-restricted-protocol", "protocol")
    if Api.OPENAI in restrictions:
        raise argparse.ArgumentTypeError(f"'{Api.OPENAI}' is served over HTTP alone: use --http-restricted-api for it")
    return {
        api: Restriction(_GRPC_HEADER_PREFIX + restriction.header, restriction.value)
        for api, restriction in restrictions.items()
    }


def _restriction(text: str, flag: str, feature: str) -> Restrictions:
    groups, _, pair = text.partition(":")
    header, _, value = pair.partition("=")
    if not (groups and header and value):
        raise argparse.ArgumentTypeError(f"{flag} option format is '<config name>:<setting>=<value>'. Got {text}")
    restrictions: dict[Api, Restriction] = {}
    for name in groups.split(","):
        if name not in _GROUPS:
            groups_here = ", ".join(_GROUPS)
            raise argparse.ArgumentTypeError(f"unknown restricted {feature} '{name}'; they are {groups_here}")
        if Api(name) in restrictions:
            raise argparse.ArgumentTypeError(in_two_groups(feature, name))
        restrictions[Api(name)] = Restriction(header, value)
    if Api.MODEL_REPOSITORY in restrictions:
        restrictions[Api.MODEL_INDEX] = Restriction(header, value)
    return restrictions


def in_two_groups(feature: str, name: str) -> str:
    """Return the message for a group of the API that is restricted twice; `feature` is api or protocol."""
    return f"restricted {feature} '{name}' can not be specified in multiple config groups"


def control_token(text: str) -> Restrictions:
    """Read the control token in a file; a file and not a value, since others see a process' command line."""
    try:
        token = Path(text).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise argparse.ArgumentTypeError(f"{text!r} cannot be read: {error}") from None
    if not _TOKEN.fullmatch(token):
        raise argparse.ArgumentTypeError(
            f"{text!r} holds no token: at least 16 letters, digits or any of . _ ~ + / - are needed, and nothing else"
        )
    return control_restrictions(token)


def log_file(text: str) -> str:
    """Return a file's path once it can be opened for appending."""
    try:
        with Path(text).open("a", encoding="utf-8"):
            return text
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{text!r} cannot be written: {error.strerror}") from None


def metrics_setting(text: str) -> tuple[str, str]:
    """Parse `<setting>=<value>`."""
    setting, equals, value = text.partition("=")
    if not (equals and setting and value) or "," in setting:
        raise argparse.ArgumentTypeError(f"--metrics-config option format is <setting>=<value>. Got {text}")
    return setting, value


def repository(text: str) -> Path:
    """Return the path of a repository, which must be a folder's: an object storage is refused with the nearest way."""
    scheme, separator, _ = text.partition("://")
    if separator:
        raise argparse.ArgumentTypeError(
            f"{text!r} is in a storage ({scheme}), and this server reads folders. Copy the repository to one first "
            "(aws s3 sync, gcloud storage rsync, azcopy), or declare models whose storageUri is there: with argosy up "
            "and on a cluster an agent brings them to the server, verified and resumed"
        )
    return Path(text)


def memory_bytes(text: str) -> int:
    """Parse an amount of memory: bytes, or a quantity of Kubernetes."""
    try:
        return parse_bytes(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def header_pattern(text: str) -> str:
    """Return a pattern of headers' names once it is known to be one."""
    try:
        HeaderForwarding(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def integer(text: str, least: int = -_INT32, most: int = _INT32 - 1) -> int:
    """Parse a whole number from `least` to `most`."""
    if not _INTEGER.fullmatch(text):
        raise argparse.ArgumentTypeError(f"Invalid option value. Got {text}")
    return _within(int(text), text, least, most)


def number(text: str, least: float = -math.inf) -> float:
    """Parse a finite number from `least` on."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"Invalid option value. Got {text}") from None
    return _within(value, text, least, sys.float_info.max)


def pair(text: str, separator: str) -> tuple[str, str]:
    """Parse `<first><separator><second>` into the two texts."""
    first, middle, second = text.partition(separator)
    if not middle:
        raise argparse.ArgumentTypeError(
            "Cannot parse pair option due to incorrect number of inputs.--<pair option> argument requires format "
            f"<first>{separator}<second>. Found: {text}"
        )
    return first, second


def gpu_limit(text: str) -> tuple[int, float]:
    """Parse `<device_id>:<fraction>`, with a fraction from 0 to 1."""
    device, fraction = pair(text, ":")
    ordinal, limit = integer(device), number(fraction)
    if ordinal < 0:
        raise argparse.ArgumentTypeError(f"expects device ID >= 0, got {ordinal}")
    if not 0.0 <= limit <= 1.0:
        raise argparse.ArgumentTypeError(f"expects limit fraction to be in range [0.0, 1.0], got {limit:f}")
    return ordinal, limit


def _within(value: _Number, text: str, least: float, most: float) -> _Number:
    if not least <= value <= most:
        raise argparse.ArgumentTypeError(f"Provided option value is out of bound. Got {text}")
    return value


def natural(text: str) -> int:
    """Parse a whole number of 32 bits from 0 on."""
    return integer(text, 0)


def threads(text: str) -> int:
    """Parse a number of threads from 1 on."""
    return integer(text, 1)


def duration(text: str) -> float:
    """Parse a time of 0 or longer."""
    return number(text, 0)


def milliseconds(text: str) -> float:
    """Parse a time of at least 1 ms."""
    return number(text, 1)


def size(text: str) -> int:
    """Parse a number of bytes from 0 on."""
    return integer(text, 0, _INT64 - 1)


def port(text: str) -> int:
    """Parse the number of a port, where 0 takes any free one."""
    return integer(text, 0, 65535)


def size_above_zero(flag: str) -> Callable[[str], int]:
    """Return the parser of a flag's size, which says in tritonserver's words that 0 is none."""

    def parse(text: str) -> int:
        value = integer(text, -_INT64, _INT64 - 1)
        if value <= 0:
            raise argparse.ArgumentTypeError(f"Error: {flag} must be greater than 0.")
        return value

    return parse


def verbosity(text: str) -> int:
    """Parse a level, or true for 1 and false for 0."""
    level = {"true": 1, "false": 0}.get(text.lower())
    return integer(text) if level is None else level


def boolean(text: str) -> bool:
    """Parse true/1/on and false/0/off, in any case, as tritonserver does."""
    lowered = text.lower()
    if lowered in ("true", "1", "on"):
        return True
    if lowered in ("false", "0", "off"):
        return False
    raise argparse.ArgumentTypeError(f"invalid value for bool option: {text}")
