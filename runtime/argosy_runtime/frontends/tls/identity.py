"""What a TLS port presents to its clients, made from its files."""

import ssl
from dataclasses import dataclass
from pathlib import Path

from argosy_runtime.errors import ServingError, invalid

from .files import TlsFiles


@dataclass(frozen=True, slots=True)
class Identity:
    """A context for handshakes, and when its certificate expires, in seconds since 1970."""

    context: ssl.SSLContext
    expires_at: float


def read_identity(files: TlsFiles, protocol: str) -> Identity:
    """Return the identity in the files, for clients that speak `protocol` (its name in ALPN).

    Raises INVALID_ARG, naming the flags and their files, where the files do not do.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols([protocol])
    try:
        context.load_cert_chain(files.certificate, files.key, password=_no_password)
        expires_at = _expiry(files.certificate)
    except (OSError, ValueError) as error:
        raise _useless(files.identity_flags, error) from error
    if files.clients_root:
        _require_certificates(context, files)
    return Identity(context, expires_at)


def _require_certificates(context: ssl.SSLContext, files: TlsFiles) -> None:
    context.verify_mode = ssl.CERT_REQUIRED
    # A resumed session would be let in without another look at its certificate.
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET
    try:
        context.load_verify_locations(files.clients_root)
    except OSError as error:
        raise _useless(f"--{files.flags}-root-cert={files.clients_root}", error) from error


def _expiry(path: str) -> float:
    # Only servers with TLS need the library.
    from cryptography.x509 import load_pem_x509_certificates

    first = load_pem_x509_certificates(Path(path).read_bytes())[0]
    return first.not_valid_after_utc.timestamp()


def _no_password() -> str:
    """Raise, in place of OpenSSL's question on the terminal."""
    raise ValueError("the key is encrypted, and there is no flag for its password")


def _useless(flags: str, error: Exception) -> ServingError:
    return invalid(f"{flags} cannot be used: {error}")
