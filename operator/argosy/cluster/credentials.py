"""Who we are to which API server: a Pod's service account, or a kubeconfig.

A Pod's account is read here, though the kubernetes package could: importing any part of that package imports every
model of the whole API twice, 75 MB that the operator's Pod would hold for nothing. A kubeconfig, with its exec plugins
and identity providers, is that package's, and is only asked for outside a cluster.
"""

import os
import ssl
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import ApiError

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
RENEW_S = 60.0
"""How often a token is read again: the kubelet and plugins replace it long before it ends."""


class CredentialsError(ApiError):
    """There is no way to an API server; the message says what was looked for."""

    def __init__(self, message: str) -> None:
        super().__init__(0, "Credentials", message)


@dataclass(slots=True)
class Credentials:
    """An API server's URL, how to trust it, and what to show it. Files are paths of PEM files, empty for none."""

    server: str
    authority_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    insecure: bool = False
    server_hostname: str | None = None
    proxy: str | None = None
    authorization: str = ""
    renewal: Callable[[], Awaitable[str]] | None = None
    _renewed: float = field(default_factory=time.monotonic)

    def tls(self) -> ssl.SSLContext | None:
        """How its certificate is checked; None for plain HTTP."""
        if not self.server.startswith("https"):
            return None
        context = ssl.create_default_context(cafile=self.authority_file or None)
        # Clusters' own authorities often lack extensions that Python 3.13 began to ask for, and no other client does.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if self.certificate_file:
            context.load_cert_chain(self.certificate_file, self.key_file or None)
        if self.insecure:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context

    async def headers(self) -> dict[str, str]:
        """What each request shows."""
        if time.monotonic() - self._renewed > RENEW_S:
            await self.renew()
        return {"Authorization": self.authorization} if self.authorization else {}

    async def renew(self) -> None:
        """Read the token again. What cannot be read leaves the one that was."""
        self._renewed = time.monotonic()
        if self.renewal is not None:
            self.authorization = await self.renewal() or self.authorization


async def find(kubeconfig: Path | None = None, context: str | None = None) -> Credentials:
    """The given kubeconfig; else the Pod's service account; else $KUBECONFIG or ~/.kube/config.

    Raises CredentialsError.
    """
    if kubeconfig is None and context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
        return of_account(ACCOUNT, os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"])
    return await _of_kubeconfig(kubeconfig, context)


def of_account(folder: Path, host: str, port: str) -> Credentials:
    """A Pod's service account, mounted in a folder. Raises CredentialsError."""

    async def bearer() -> str:
        try:
            return f"Bearer {(folder / 'token').read_text().strip()}"
        except OSError:
            return ""

    try:
        token = (folder / "token").read_text().strip()
    except OSError as error:
        raise CredentialsError(f"{folder / 'token'}: {error.strerror}; give the Pod a service account") from error
    shown = f"[{host}]" if ":" in host else host
    return Credentials(
        f"https://{shown}:{port}",
        authority_file=str(folder / "ca.crt"),
        authorization=f"Bearer {token}",
        renewal=bearer,
    )


async def _of_kubeconfig(path: Path | None, context: str | None) -> Credentials:
    try:
        from kubernetes.aio.client import Configuration  # type: ignore[import-untyped,unused-ignore]
        from kubernetes.aio.config import load_kube_config  # type: ignore[import-untyped,unused-ignore]
        from kubernetes.aio.config.config_exception import ConfigException  # type: ignore[import-untyped,unused-ignore]
    except ModuleNotFoundError as missing:
        raise CredentialsError("to read a kubeconfig: pip install 'argosy[kubeconfig]'") from missing

    found: Any = Configuration()
    place = None if path is None else str(path)
    try:
        loader = await load_kube_config(  # type: ignore[no-untyped-call,unused-ignore]
            place, context, client_configuration=found, persist_config=False
        )
    except (ConfigException, OSError, ValueError, TypeError, AttributeError) as error:
        named = place or os.environ.get("KUBECONFIG") or "~/.kube/config"
        raise CredentialsError(
            f"{named} gives no way to an API server ({error}); name one with --kubeconfig"
        ) from error

    async def bearer() -> str:
        await loader.load_and_set(found)
        return str(found.api_key.get("BearerToken", ""))

    return Credentials(
        found.host.rstrip("/"),
        authority_file=found.ssl_ca_cert or "",
        certificate_file=found.cert_file or "",
        key_file=found.key_file or "",
        insecure=not found.verify_ssl,
        server_hostname=found.tls_server_name,
        proxy=found.proxy,
        authorization=str(found.api_key.get("BearerToken", "")),
        renewal=bearer,
    )
