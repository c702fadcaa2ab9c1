"""The API server, for two requests of one Pod: watch one ConfigMap, patch another.

Every call reads the token and the certificate authority again, since both rotate, and opens its own connection: calls
are few, and nothing is left over from a connection that broke. The official client is not used here: its models would
take more memory than the rest of the agent.
"""

import os
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path

import httpx

from argosy_agent.contract.documents import ConfigMapName

TIMEOUT_S = 10.0
KEEPALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, option), seconds)
        for option, seconds in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))
        if hasattr(socket, option)
    ),
]
"""An API server whose machine is gone closes no connection: a watch notices that after half a minute."""


class ApiServerError(Exception):
    """The API server refused a request or could not be reached. The message has the reason and what to do."""


class ApiServer:
    """The API server, and the credentials for it: a folder with `token` and `ca.crt`."""

    def __init__(self, url: str, credentials: Path) -> None:
        self.url, self._credentials = url, credentials

    @classmethod
    def of_pod(cls, credentials: Path, environment: Mapping[str, str] = os.environ) -> "ApiServer":
        """Return the API server of the cluster that this Pod runs in. Raises ApiServerError outside of one."""
        host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
        if not host or not port:
            raise ApiServerError(
                "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: --configmap works in a Pod; "
                "elsewhere use --desired and --state-file"
            )
        return cls(f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}", credentials)

    def client(self, read_timeout_s: float = TIMEOUT_S) -> httpx.AsyncClient:
        """Return a new connection with today's token. Raises ApiServerError where there is none."""
        try:
            token = (self._credentials / "token").read_text().strip()
            trust = ssl.create_default_context(cafile=self._credentials / "ca.crt")
        except (OSError, ssl.SSLError) as error:
            raise ApiServerError(
                f"{self._credentials} must hold `token` and `ca.crt` of a service account: {error}; "
                "mount a projected service account token there"
            ) from error
        return httpx.AsyncClient(
            base_url=self.url,
            transport=httpx.AsyncHTTPTransport(verify=trust, socket_options=KEEPALIVE),
            headers={"Authorization": f"Bearer {token}", "Accept": "application/json", "User-Agent": "argosy-agent"},
            timeout=httpx.Timeout(TIMEOUT_S, read=read_timeout_s),
            trust_env=False,
        )


def collection(name: ConfigMapName) -> str:
    """Return the path of a namespace's ConfigMaps."""
    return f"/api/v1/namespaces/{name.namespace}/configmaps"


async def refusal(response: httpx.Response, verbs: str, name: ConfigMapName) -> ApiServerError:
    """Return why the API server refused to `verbs` a ConfigMap, in words."""
    await response.aread()
    message = _message(response)
    if response.status_code == httpx.codes.FORBIDDEN:
        message += (
            f'; the service account needs a Role in {name.namespace} with apiGroups [""], resources [configmaps], '
            f"resourceNames [{name.name}], verbs [{verbs}]"
        )
    if response.status_code == httpx.codes.UNAUTHORIZED:
        message += "; its token is expired or of another cluster"
    return ApiServerError(f"ConfigMap {name}: {message} (HTTP status {response.status_code})")


def _message(response: httpx.Response) -> str:
    try:
        value = response.json()
    except ValueError:
        value = None
    message = value.get("message") if isinstance(value, dict) else None
    return str(message or response.reason_phrase)
