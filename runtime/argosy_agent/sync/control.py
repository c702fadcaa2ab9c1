"""A server's public control protocol: health, readiness, index, load, unload, statistics (V2 over HTTP)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import httpx

from argosy_agent.contract import FailureKind, LoadedModel, LoadState
from argosy_agent.controltoken import authorization
from argosy_common import crash_loops, device_errors

ASK_TIMEOUT_S = 10.0


class ControlError(Exception):
    """The server refused or failed a control request."""


class RefusedError(ControlError):
    """The server answered with an error: its own words are the message. `faulty`: by these a GPU does not work."""

    def __init__(self, message: str, *, faulty: bool = False) -> None:
        super().__init__(message)
        self.faulty = faulty


class UnreachableError(ControlError):
    """The server gave no answer: it is starting, hung or gone."""


class SlowError(UnreachableError):
    """The server took the request and did not answer in time."""


@dataclass(frozen=True, slots=True)
class Tally:
    """What one model version has done since it was loaded. Times are nanoseconds, summed over requests.

    `last_ms`: when the last request was answered, milliseconds of Unix time; 0 where none was.
    """

    model: str
    version: int
    requests: int
    failures: int
    queue_ns: int
    compute_ns: int
    last_ms: int = 0


class Controls(Protocol):
    """What the agent asks of a server; `Control` does it over HTTP."""

    async def index(self) -> tuple[LoadedModel, ...]:
        """Return every model version that is loaded, or was tried."""

    async def is_ready(self, model: str, version: int) -> bool:
        """Return whether one version of a model is ready."""

    async def load(self, model: str) -> None:
        """Load or reload a model."""

    async def divide(self, model: str) -> None:
        """Divide a model's requests among its versions as its configuration says now, and load nothing."""

    async def unload(self, model: str) -> None:
        """Drop a model."""

    async def statistics(self, model: str = "") -> tuple[Tally, ...]:
        """Return what every version of a model, or of all models, has done."""


class Control:
    """One server's control protocol. Loading takes as long as it takes: only the other calls time out.

    `token_file` has the token that the server was started with, if it was; it is read at each use.
    """

    def __init__(self, url: str, token_file: Path | None = None) -> None:
        self.url = url
        self._token_file = token_file
        self._client = httpx.AsyncClient(base_url=url, timeout=ASK_TIMEOUT_S, trust_env=False)

    async def close(self) -> None:
        """Close its connections."""
        await self._client.aclose()

    async def live(self) -> bool:
        """Return whether the server answers at all."""
        try:
            response = await self._client.get("/v2/health/live")
        except httpx.HTTPError:
            return False
        return response.is_success

    async def index(self) -> tuple[LoadedModel, ...]:
        """Return every model version the server has loaded, or tried to. Raises ControlError."""
        entries = await self._post("/v2/repository/index", ASK_TIMEOUT_S)
        return tuple(_loaded(entry) for entry in entries or [] if entry.get("version") and entry.get("state"))

    async def is_ready(self, model: str, version: int) -> bool:
        """Return whether one version of a model is ready, of whatever else the server holds. Raises
        UnreachableError.
        """
        path = f"/v2/models/{model}/versions/{version}/ready"
        try:
            return (await self._client.get(path)).is_success
        except httpx.HTTPError as error:
            raise _unreachable(path, error) from error

    async def load(self, model: str) -> None:
        """Load a model, or reload it while it is served; return when the server answers. Raises ControlError."""
        await self._post(f"/v2/repository/models/{model}/load", None)

    async def divide(self, model: str) -> None:
        """Divide a served model's requests as its configuration says now, and load nothing. Raises ControlError."""
        body = {"parameters": {"version_traffic": True}}
        await self._post(f"/v2/repository/models/{model}/load", ASK_TIMEOUT_S, body)

    async def unload(self, model: str) -> None:
        """Stop new requests to a model and drop it when the last is answered. Raises ControlError."""
        await self._post(f"/v2/repository/models/{model}/unload", None)

    async def statistics(self, model: str = "") -> tuple[Tally, ...]:
        """Return what every loaded version of a model, or of all models, has done. Raises ControlError."""
        path = f"/v2/models/{model}/stats" if model else "/v2/models/stats"
        return tuple(_tally(entry) for entry in (await self._get(path)).get("model_stats", []))

    async def _post(self, path: str, timeout_s: float | None, body: Mapping[str, Any] = MappingProxyType({})) -> Any:
        try:
            headers = self._authorization()
            return _answer(await self._client.post(path, json=dict(body), timeout=timeout_s, headers=headers))
        except httpx.HTTPError as error:
            raise _unreachable(path, error) from error

    def _authorization(self) -> dict[str, str]:
        if self._token_file is None:
            return {}
        try:
            return authorization(self._token_file)
        except OSError as error:
            raise RefusedError(f"the server's control token cannot be read: {error}") from error

    async def _get(self, path: str) -> Any:
        try:
            return _answer(await self._client.get(path))
        except httpx.HTTPError as error:
            raise _unreachable(path, error) from error


def _unreachable(path: str, error: httpx.HTTPError) -> UnreachableError:
    kind = SlowError if isinstance(error, httpx.ReadTimeout) else UnreachableError
    return kind(f"the server did not answer {path}: {str(error) or type(error).__name__}")


def _answer(response: httpx.Response) -> Any:
    try:
        value = response.json() if response.content else None
    except ValueError:
        value = None
    if response.is_success:
        return value
    words = value.get("error") if isinstance(value, dict) else None
    raise RefusedError(str(words or f"HTTP status {response.status_code}"))


def _loaded(entry: dict[str, Any]) -> LoadedModel:
    state = LoadState.__members__.get(str(entry["state"]), LoadState.UNAVAILABLE)
    reason = str(entry.get("reason", ""))
    return LoadedModel(str(entry["name"]), int(entry["version"]), state, reason, _failure(state, reason))


def _failure(state: LoadState, reason: str) -> FailureKind | None:
    """Return the failure that a server's index reports; the reason of a failed load is in the answer to the load."""
    crashes = crash_loops.matches(reason)
    if device_errors.matches(crash_loops.last_of(reason)) and state is LoadState.UNAVAILABLE:
        return FailureKind.DEVICE
    return FailureKind.CRASH if crashes else None


def _tally(entry: dict[str, Any]) -> Tally:
    times = entry.get("inference_stats", {})

    def of(name: str, part: str) -> int:
        return int(times.get(name, {}).get(part, 0))

    compute = sum(of(name, "ns") for name in ("compute_input", "compute_infer", "compute_output"))
    return Tally(
        model=str(entry["name"]),
        version=int(entry["version"]),
        requests=of("success", "count"),
        failures=of("fail", "count"),
        queue_ns=of("queue", "ns"),
        compute_ns=compute,
        last_ms=int(entry.get("last_inference", 0)),
    )
