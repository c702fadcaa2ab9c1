"""Authentication at registries: Docker's credentials file, and the tokens of the distribution protocol."""

import base64
import json
import os
import re
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx

from argosy_agent.transfer.errors import StorageError
from argosy_agent.transfer.stores.answers import answered, unreached

CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
HUB = "registry-1.docker.io"
HUB_NAMES = ("docker.io", "index.docker.io", HUB)
PLAIN = "ARGOSY_PLAIN_REGISTRIES"
"""The environment variable that names registries (host:port, by commas) that are spoken to without TLS."""


class Login:
    """The address of one repository, and what authorizes a request to it. Thread-safe."""

    def __init__(self, uri: str, host: str, path: str, secrets: Path) -> None:
        self._uri = uri
        self._credentials = _credentials(host, secrets)
        on_hub = host in HUB_NAMES
        self.repository = f"library/{path}" if on_hub and "/" not in path else path
        self.url = f"{'http' if _is_plain(host) else 'https'}://{HUB if on_hub else host}"
        self._client = httpx.Client(timeout=30.0, follow_redirects=True)
        self._lock = threading.Lock()
        self._authorization = ""

    def headers(self) -> Mapping[str, str]:
        """Return what goes with a request."""
        return {"Authorization": self._authorization} if self._authorization else {}

    def begin(self) -> None:
        """Ask the registry what it wants, and get it. Raises StorageError."""
        with self._lock:
            self._begin()

    def renew(self, used: Mapping[str, str]) -> None:
        """Log in again where the headers `used` are still the current ones: once for many readers."""
        with self._lock:
            if self.headers() == used:
                self._begin()

    def close(self) -> None:
        """Let connections go."""
        self._client.close()

    def _begin(self) -> None:
        response = self._get(f"{self.url}/v2/")
        challenge = response.headers.get("WWW-Authenticate", "")
        scheme = challenge.partition(" ")[0].lower()
        if response.status_code == 401 and scheme == "bearer":
            self._authorization = f"Bearer {self._token(dict(CHALLENGE.findall(challenge)))}"
        elif response.status_code == 401 and scheme == "basic" and self._credentials is not None:
            user, password = self._credentials
            self._authorization = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    def _token(self, challenge: Mapping[str, str]) -> str:
        if "realm" not in challenge:
            raise StorageError(f"{self._uri}: the registry's WWW-Authenticate names no realm")
        query = {"scope": f"repository:{self.repository}:pull"}
        if "service" in challenge:
            query["service"] = challenge["service"]
        response = self._get(challenge["realm"], params=query, auth=self._credentials)
        if response.status_code != 200:
            raise answered(self._uri, response.status_code, "it gave no token")
        answer = response.json()
        return str(answer.get("token") or answer.get("access_token") or "")

    def _get(self, url: str, **options: Any) -> httpx.Response:
        try:
            response = self._client.get(url, **options)
        except httpx.HTTPError as error:
            raise unreached(self._uri, str(error) or type(error).__name__) from error
        if response.status_code >= 500 or response.status_code == 429:
            raise answered(self._uri, response.status_code)
        return response


def _is_plain(host: str) -> bool:
    name = host.rsplit(":", 1)[0]
    return name in ("localhost", "127.0.0.1", "[::1]") or host in os.environ.get(PLAIN, "").split(",")


def _credentials(host: str, secrets: Path) -> tuple[str, str] | None:
    """Return user and password for a registry, from the first Docker configuration that has some."""
    names = {host, f"https://{host}"} | ({*HUB_NAMES, "https://index.docker.io/v1/"} if host in HUB_NAMES else set())
    for path in _configurations(secrets):
        for name, entry in _logins(path).items():
            if name.rstrip("/") in {host.rstrip("/") for host in names} and (pair := _pair(entry)):
                return pair
    return None


def _configurations(secrets: Path) -> Iterator[Path]:
    yield from (secrets / name for name in (".dockerconfigjson", "config.json"))
    yield Path(os.environ.get("DOCKER_CONFIG", Path.home() / ".docker")) / "config.json"


def _logins(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        return {}
    try:
        logins = json.loads(path.read_text()).get("auths", {})
    except (ValueError, AttributeError) as error:
        raise StorageError(f"{path} is no Docker configuration: {error}") from error
    return logins if isinstance(logins, dict) else {}


def _pair(entry: Mapping[str, str]) -> tuple[str, str] | None:
    """Return user and password of an entry.

    An identity token stands for a password, with the user that tokens have.
    """
    if entry.get("auth"):
        user, _, password = base64.b64decode(entry["auth"]).decode().partition(":")
        return user, entry.get("identitytoken") or password
    if entry.get("username"):
        return entry["username"], entry.get("password", "")
    return None
