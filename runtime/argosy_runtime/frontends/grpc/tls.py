"""TLS of the gRPC port, as tritonserver's flags have it."""

import ssl
from dataclasses import dataclass
from typing import Final

from argosy_runtime.errors import ServingError, invalid

_ALPN: Final = "h2"


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """Paths of PEM files. `clients_root` is what clients' certificates are checked against; "" asks for none."""

    certificate: str
    key: str
    clients_root: str = ""


def server_context(files: TlsFiles) -> ssl.SSLContext:
    """Return what a listening socket needs. Raises INVALID_ARG, naming the flags, where the files do not do."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols([_ALPN])
    try:
        context.load_cert_chain(files.certificate, files.key)
    except (OSError, ssl.SSLError) as error:
        raise _useless("--grpc-server-cert and --grpc-server-key", error) from error
    if files.clients_root:
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_verify_locations(files.clients_root)
        except (OSError, ssl.SSLError) as error:
            raise _useless("--grpc-root-cert", error) from error
    return context


def _useless(flags: str, error: Exception) -> ServingError:
    return invalid(f"{flags} cannot be used: {error}")
