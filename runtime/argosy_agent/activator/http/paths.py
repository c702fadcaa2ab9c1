"""What a path of the V2 protocol asks for, and for which model. Pure."""

from dataclasses import dataclass
from urllib.parse import unquote

from argosy_agent.activator.asked import Asked


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked, and of which model; empty where it is none's."""

    asked: Asked
    model: str = ""


_OF_SERVER = {"/v2": Asked.SERVER, "/v2/health/live": Asked.LIVE, "/v2/health/ready": Asked.SERVER_READY}
_OF_MODEL = {
    "": Asked.HOLD,
    "config": Asked.HOLD,
    "infer": Asked.HOLD,
    "generate": Asked.HOLD,
    "generate_stream": Asked.HOLD,
    "ready": Asked.READY,
}
_MODELS = ["", "v2", "models"]


def wanted(target: str) -> Wanted:
    """Return what a request's target asks for, be it a path or a whole URL."""
    path = _path(target)
    if path in _OF_SERVER:
        return Wanted(_OF_SERVER[path])
    parts = path.split("/")
    if parts[:3] != _MODELS or len(parts) < 4 or not parts[3] or parts[3:] == ["stats"]:
        return Wanted(Asked.OTHER)
    rest = parts[4:]
    if rest[:1] == ["versions"]:
        rest = rest[2:]
    return Wanted(_OF_MODEL.get("/".join(rest), Asked.PASS), unquote(parts[3]))


def _path(target: str) -> str:
    path = target.partition("?")[0]
    if "://" in path and not path.startswith("/"):
        path = "/" + path.partition("://")[2].partition("/")[2]
    return path.rstrip("/") or "/"
