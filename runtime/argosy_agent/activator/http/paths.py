"""The kind and the model of a path of the V2 protocol, or of OpenAI's API. Pure."""

from dataclasses import dataclass
from urllib.parse import unquote

from argosy_agent.activator.request_kind import RequestKind

from .openai import OpenAiPath, parse_openai


@dataclass(frozen=True, slots=True)
class ParsedPath:
    """The kind of a request, and its model; empty where it concerns none, or the body names it.

    `openai` is set for a request of OpenAI's API.
    """

    kind: RequestKind
    model: str = ""
    openai: OpenAiPath | None = None


_OF_SERVER = {
    "/v2": RequestKind.SERVER,
    "/v2/health/live": RequestKind.LIVE,
    "/v2/health/ready": RequestKind.SERVER_READY,
}
_OF_MODEL = {
    "": RequestKind.QUEUE,
    "config": RequestKind.QUEUE,
    "infer": RequestKind.QUEUE,
    "generate": RequestKind.QUEUE,
    "generate_stream": RequestKind.QUEUE,
    "ready": RequestKind.READY,
}
_MODELS = ["", "v2", "models"]


def parse_target(target: str) -> ParsedPath:
    """Return the kind and the model of a request's target, which is a path or a full URL."""
    path = _path(target)
    openai = parse_openai(path)
    if openai is not None:
        return ParsedPath(openai.kind, openai=openai)
    if path in _OF_SERVER:
        return ParsedPath(_OF_SERVER[path])
    parts = path.split("/")
    if parts[:3] != _MODELS or len(parts) < 4 or not parts[3] or parts[3:] == ["stats"]:
        return ParsedPath(RequestKind.OTHER)
    rest = parts[4:]
    if rest[:1] == ["versions"]:
        rest = rest[2:]
    return ParsedPath(_OF_MODEL.get("/".join(rest), RequestKind.PASS), unquote(parts[3]))


def _path(target: str) -> str:
    path = target.partition("?")[0]
    if "://" in path and not path.startswith("/"):
        path = "/" + path.partition("://")[2].partition("/")[2]
    return path.rstrip("/") or "/"
