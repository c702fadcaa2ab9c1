"""The flags and environment variables of SageMaker's and Vertex AI's ports."""

import argparse
from collections.abc import Mapping
from typing import Final

from argosy_runtime.frontends.http.clouds.sagemaker import KINDS, SageMakerOptions
from argosy_runtime.frontends.http.clouds.vertex import VertexAiOptions

from .values import boolean, pair, port

_NO_MODEL: Final = "unspecified_SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"
_PREDICTION: Final = "PREDICTION"


def is_vertex_ai(environment: Mapping[str, str]) -> bool:
    """Return whether Vertex AI has started this process, so that its port is the only one by default."""
    return environment.get("AIP_MODE") == _PREDICTION


def add_cloud_flags(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    """Add the flags of both ports."""
    add = parser.add_argument
    of_model = "serve /ping, /invocations for the model that SAGEMAKER_TRITON_DEFAULT_MODEL_NAME names, and /models"
    add("--allow-sagemaker", type=boolean, default=False, help=of_model)
    add("--sagemaker-port", type=port, default=8080)
    add("--sagemaker-safe-port-range", type=_range, metavar="FIRST-LAST", help="ports that SageMaker may be served on")
    routes = "serve the routes that AIP_PREDICT_ROUTE and AIP_HEALTH_ROUTE name; true with AIP_MODE=PREDICTION"
    add("--allow-vertex-ai", type=boolean, default=is_vertex_ai(environment), help=routes)
    number = "AIP_HTTP_PORT without the flag, or else 8080"
    add("--vertex-ai-port", type=port, default=environment.get("AIP_HTTP_PORT", "8080"), help=number)
    model = "the model of predictions; without the flag the only one that is loaded"
    add("--vertex-ai-default-model", default="", help=model)


def sagemaker_options(
    parser: argparse.ArgumentParser, values: argparse.Namespace, environment: Mapping[str, str]
) -> SageMakerOptions | None:
    """Return SageMaker's options, None where it is not served. Ends the process where they do not fit."""
    if not values.allow_sagemaker:
        return None
    port, allowed = values.sagemaker_port, values.sagemaker_safe_port_range
    if allowed is not None and not allowed[0] <= port <= allowed[1]:
        parser.error(
            f"The server cannot listen to SageMaker requests at port {port}, allowed port range is "
            f"[{allowed[0]}, {allowed[1]}]"
        )
    kind = environment.get("SAGEMAKER_TRITON_INFERENCE_TYPE", "infer")
    if kind not in KINDS:
        parser.error(f"Invalid SAGEMAKER_TRITON_INFERENCE_TYPE '{kind}'. Must be one of: {', '.join(KINDS)}")
    return SageMakerOptions(
        port=port,
        model=environment.get("SAGEMAKER_TRITON_DEFAULT_MODEL_NAME", _NO_MODEL),
        kind=kind,
        ping="live" if environment.get("SAGEMAKER_TRITON_PING_MODE") == "live" else "ready",
    )


def vertex_ai_options(
    parser: argparse.ArgumentParser, values: argparse.Namespace, environment: Mapping[str, str]
) -> VertexAiOptions | None:
    """Return Vertex AI's options, None where it is not served. Ends the process where a route is missing."""
    if not values.allow_vertex_ai:
        return None
    for name in ("AIP_PREDICT_ROUTE", "AIP_HEALTH_ROUTE"):
        if not environment.get(name):
            parser.error(f"{name} is not defined for Vertex AI endpoint")
    return VertexAiOptions(
        port=values.vertex_ai_port,
        predict_route=environment["AIP_PREDICT_ROUTE"],
        health_route=environment["AIP_HEALTH_ROUTE"],
        model=values.vertex_ai_default_model,
    )


def _range(text: str) -> tuple[int, int]:
    first, last = pair(text, "-")
    return port(first), port(last)
