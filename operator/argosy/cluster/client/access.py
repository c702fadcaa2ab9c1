"""The API server and the credentials for it: a Pod's service account, or a kubeconfig."""

import logging
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from kubernetes.aio.client import Configuration
from kubernetes.aio.config import list_kube_config_contexts, load_incluster_config, load_kube_config
from kubernetes.aio.config.config_exception import ConfigException

from .errors import ApiError

log = logging.getLogger(__name__)

RENEW_S = 60.0
"""Seconds between readings of a token: the kubelet and plugins replace it long before it expires."""
_DEFAULT = "default"
_READER = "kubernetes.aio.config.kube_config"
_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_UNREADABLE = (ConfigException, OSError, ValueError, TypeError, AttributeError)
"""What the kubernetes package raises for files that are missing or invalid."""


class CredentialsError(ApiError):
    """No usable credentials; the message says where they were looked for."""

    def __init__(self, message: str) -> None:
        super().__init__(0, "Credentials", message)


@dataclass(frozen=True, slots=True)
class Access:
    """An API server's URL, certificate authority and credentials, for other clients in the process.

    Files are paths of PEM files; None without one.
    """

    server: str
    authority_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    insecure: bool = False
    proxy: str | None = None
    authorization: str | None = None


async def configured(kubeconfig: Path | None = None, context: str | None = None) -> Configuration:
    """Load the kubeconfig; without one the Pod's service account; else $KUBECONFIG or ~/.kube/config.

    The token is read again every `RENEW_S` seconds. Raises CredentialsError.
    """
    configuration = Configuration()
    # Clusters' own authorities often lack extensions that only Python 3.13 and later require.
    configuration.disable_strict_ssl_verification = True
    configuration.connection_pool_maxsize = 0  # watches would use up the pool; `Connection` limits requests
    in_pod = kubeconfig is None and context is None and "KUBERNETES_SERVICE_HOST" in os.environ
    try:
        load = _of_account(configuration) if in_pod else await _of_kubeconfig(configuration, kubeconfig, context)
    except _UNREADABLE as error:
        raise CredentialsError(
            f"the Pod has no service account that can be used ({error}); give it one"
            if in_pod
            else f"{_named(kubeconfig)} gives no way to an API server ({error}); name one with --kubeconfig"
        ) from error
    configuration.refresh_api_key_hook = _Renewal(load)
    return configuration


def default_namespace(kubeconfig: Path | None = None, context: str | None = None) -> str:
    """Return the namespace of the kubeconfig's context, or that of the Pod; `default` where none is named.

    Raises CredentialsError.
    """
    if kubeconfig is None and context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
        return _NAMESPACE_FILE.read_text().strip() if _NAMESPACE_FILE.exists() else _DEFAULT
    _quieten_reader()
    try:
        contexts, current = list_kube_config_contexts(None if kubeconfig is None else str(kubeconfig))
    except _UNREADABLE as error:
        raise CredentialsError(f"{_named(kubeconfig)} names no context ({error})") from error
    chosen = current if context is None else next((one for one in contexts if one["name"] == context), current)
    return str(chosen["context"].get("namespace") or _DEFAULT)


async def access(configuration: Configuration) -> Access:
    """Return the configuration for other clients."""
    return Access(
        server=configuration.host,
        authority_file=configuration.ssl_ca_cert,
        certificate_file=configuration.cert_file,
        key_file=configuration.key_file,
        insecure=not configuration.verify_ssl,
        proxy=configuration.proxy,
        authorization=await configuration.get_api_key_with_prefix("BearerToken"),
    )


def _quieten_reader() -> None:
    """Keep the reader of kubeconfigs from warning of a file that is missing, since the error says so."""
    logging.getLogger(_READER).setLevel(logging.ERROR)


def _named(kubeconfig: Path | None) -> str:
    return str(kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config")


_Load = Callable[[], Awaitable[object]]


class _Renewal:
    """Reads the token again when it is due. After an error the former one stays in use."""

    def __init__(self, load: _Load) -> None:
        self._load, self._at = load, time.monotonic()

    async def __call__(self, _: object) -> None:
        if time.monotonic() - self._at < RENEW_S:
            return
        self._at = time.monotonic()
        try:
            await self._load()
        except _UNREADABLE as error:
            log.warning("the credentials cannot be read again: %s", error)


def _of_account(configuration: Configuration) -> _Load:
    async def load() -> None:
        load_incluster_config(configuration, try_refresh_token=False)

    load_incluster_config(configuration, try_refresh_token=False)
    return load


async def _of_kubeconfig(configuration: Configuration, path: Path | None, context: str | None) -> _Load:
    file = None if path is None else str(path)
    _quieten_reader()
    loader = await load_kube_config(file, context, client_configuration=configuration, persist_config=False)
    configuration.host = configuration.host.rstrip("/")
    return lambda: loader.load_and_set(configuration)
