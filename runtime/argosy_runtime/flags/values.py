"""Parsers of the values of flags; each raises argparse.ArgumentTypeError where a value is wrong."""

import argparse
import re
from pathlib import Path

from argosy_runtime.frontends.restrictions import Api, Restriction, Restrictions, control_restrictions
from argosy_runtime.repository.options import BackendSetting

_GRPC_HEADER_PREFIX = "triton-grpc-protocol-"
_GROUPS = tuple(api for api in Api if api is not Api.MODEL_INDEX)
"""Triton's groups, in which the index is a part of the model repository, and OpenAI's API."""
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]{16,}=*")


def backend_setting(text: str) -> BackendSetting:
    """Parse `<backend>,<setting>=<value>`, or `<setting>=<value>` for all backends."""
    try:
        return BackendSetting.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def http_restriction(text: str) -> Restrictions:
    """Parse `<api>,<api>…:<header>=<value>`: those groups of the API require that header."""
    groups, colon, pair = text.partition(":")
    header, equals, value = pair.partition("=")
    if not (colon and equals and header):
        raise argparse.ArgumentTypeError(f"'{text}' is not of the form <api>,<api>:<header>=<value>")
    groups_here = [api.value for api in _GROUPS]
    names = [name.strip() for name in groups.split(",")]
    if wrong := [name for name in names if name not in groups_here]:
        raise argparse.ArgumentTypeError(f"'{wrong[0]}' is no group of the API; they are {', '.join(groups_here)}")
    if Api.MODEL_REPOSITORY in names:
        names.append(Api.MODEL_INDEX)
    return {Api(name): Restriction(header, value) for name in names}


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


def grpc_restriction(text: str) -> Restrictions:
    """Parse the same for gRPC, where the metadata's key is a prefix and the header."""
    restrictions = http_restriction(text)
    if Api.OPENAI in restrictions:
        raise argparse.ArgumentTypeError(f"'{Api.OPENAI}' is served over HTTP alone: use --http-restricted-api for it")
    return {
        api: Restriction(_GRPC_HEADER_PREFIX + restriction.header, restriction.value)
        for api, restriction in restrictions.items()
    }


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


def milliseconds(text: str) -> int:
    """Parse a number of milliseconds, at least 1."""
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"'{text}' is no number of milliseconds above 0")
    return int(text)


def boolean(text: str) -> bool:
    """Parse true/1/on and false/0/off, in any case, as tritonserver does."""
    lowered = text.lower()
    if lowered in ("true", "1", "on"):
        return True
    if lowered in ("false", "0", "off"):
        return False
    raise argparse.ArgumentTypeError(f"'{text}' is not a boolean: use true or false")
