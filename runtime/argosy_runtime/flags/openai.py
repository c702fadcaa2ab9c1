"""The flags of OpenAI's API."""

import argparse
import logging
from collections.abc import Mapping
from pathlib import Path

from argosy_runtime.frontends.http.openai.app import OpenAiOptions
from argosy_runtime.frontends.http.openai.keyguard import KeyGuard, read_keys
from argosy_runtime.frontends.restrictions import Api, Restriction
from argosy_runtime.protocol.openai.keys import KEYS_FLAG, KeyFileError

from .values import boolean, port

_log = logging.getLogger("argosy.openai")


def add_openai_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of OpenAI's API."""
    add = parser.add_argument
    add("--allow-openai", type=boolean, default=True, help="serve OpenAI's API under /v1")
    own = "a port for it alone, 0 any free one; without the flag it is on the HTTP port"
    add("--openai-port", type=port, help=own)
    add("--openai-address", default="", help="where that port listens; like HTTP without the flag")
    keys = "only clients with one of these API keys use it; each line is sha256:HEX or NAME:sha256:HEX"
    add(KEYS_FLAG, type=_guard, metavar="FILE", help=keys)


def openai_options(
    parser: argparse.ArgumentParser, values: argparse.Namespace, restricted: Mapping[Api, Restriction]
) -> OpenAiOptions | None:
    """Return the options of OpenAI's API, None where it is not served."""
    guard: KeyGuard | None = values.openai_api_keys_file
    served = values.allow_openai and (values.allow_http or values.openai_port is not None)
    if not served:
        for flag, value in (("--openai-port", values.openai_port), (KEYS_FLAG, guard)):
            if value is not None:
                parser.error(
                    f"argument {flag}: OpenAI's API is not served, because --allow-openai or --allow-http is false"
                )
        return None
    if guard is not None and values.allow_http and Api.INFERENCE not in restricted:
        _log.warning(
            "API keys guard /v1 alone: anybody who reaches the HTTP or gRPC port may still use the V2 protocol; "
            "--http-restricted-api=inference:<header>=<value> and --grpc-restricted-protocol close it"
        )
    return OpenAiOptions(max_input_size=values.http_max_input_size, restricted=restricted, guard=guard)


def _guard(text: str) -> KeyGuard:
    path = Path(text)
    try:
        return KeyGuard(path, read_keys(path))
    except KeyFileError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None
