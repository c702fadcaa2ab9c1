"""The certificate of a port, which is replaced while the port serves."""

import asyncio
import logging
import os
import ssl
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from argosy_runtime.errors import ServingError, invalid
from argosy_runtime.telemetry.machine.certificates import CertificateState

from .files import TlsFiles
from .identity import Identity, read_identity

_log = logging.getLogger("argosy.tls")
_HTTP1, _HTTP2 = "http/1.1", "h2"
PERIOD_S = 5.0
"""How often the files are looked at. A Secret's volume itself changes a minute after the Secret."""


class ServedCertificate:
    """The certificate of one port: http, openai, grpc or metrics. New connections get the valid one that was read last.

    Files that cannot be used, or whose certificate has expired, leave the former one in place. Raises INVALID_ARG,
    naming the flags, where the first files do not do.
    """

    def __init__(self, port: str, files: TlsFiles) -> None:
        self._port = port
        self._files = files
        self._protocol = _HTTP2 if port == "grpc" else _HTTP1
        self._stamp = _stamp(files)
        self._identity = read_identity(files, self._protocol)
        self._expired = False
        self._reloads = 0
        self._failures = 0
        self.context = self._identity.context
        """The context for the port's listening socket."""
        self.context.sni_callback = self._choose

    def _choose(self, handshake: Any, name: str | None, context: ssl.SSLContext) -> None:
        """Have a handshake go on with the present certificate; OpenSSL calls this before it shows one."""
        if self._identity.context is not context:
            handshake.context = self._identity.context

    @property
    def state(self) -> CertificateState:
        """What is to be reported."""
        return CertificateState(self._port, self._identity.expires_at, self._reloads, self._failures)

    def refresh(self, now: float) -> None:
        """Take the files as they are, if they have changed. `now` is in seconds since 1970."""
        stamp = _stamp(self._files)
        if stamp != self._stamp:
            self._stamp = stamp
            self._read(now)
        if self._identity.expires_at > now:
            self._expired = False
        elif not self._expired:
            self._expired = True
            _log.error("the certificate of the %s port has expired, and clients will refuse it", self._port)

    def _read(self, now: float) -> None:
        try:
            identity = _valid(read_identity(self._files, self._protocol), self._files, now)
        except ServingError as error:
            self._failures += 1
            _log.error("the certificate of the %s port stays as it was: %s", self._port, error.message)
            return
        self._identity = identity
        self._reloads += 1
        _log.info("the %s port has another certificate, which expires at %s", self._port, _date(identity.expires_at))


def _valid(identity: Identity, files: TlsFiles, now: float) -> Identity:
    if identity.expires_at <= now:
        raise invalid(f"--{files.flags}-server-cert has expired at {_date(identity.expires_at)}")
    return identity


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def _stamp(files: TlsFiles) -> tuple[tuple[int, int, int] | None, ...]:
    """Return what changes when a file is replaced or rewritten, behind links too."""
    return tuple(map(_file_stamp, files.paths))


def _file_stamp(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


async def follow(certificates: Iterable[ServedCertificate]) -> None:
    """Look at the files of all certificates periodically, for ever."""
    certificates = tuple(certificates)
    while True:
        for certificate in certificates:
            await asyncio.to_thread(certificate.refresh, time.time())
        await asyncio.sleep(PERIOD_S)
