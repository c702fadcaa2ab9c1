"""The flags of TLS, which each port has: those of gRPC are tritonserver's, those of HTTP and metrics are alike."""

import argparse
from collections.abc import Callable
from typing import Final

from argosy_runtime.frontends.tls.files import TlsFiles

_PORTS: Final = ("http", "grpc", "metrics")


def add_tls_flags(parser: argparse.ArgumentParser, boolean: Callable[[str], bool]) -> None:
    """Add the flags of all ports."""
    for port in _PORTS:
        add = parser.add_argument
        same = "; without it that of HTTP" if port == "metrics" else ""
        add(f"--{port}-use-ssl", type=boolean, default=False, help="TLS; files that change are read again")
        mutual = f"clients need certificates, too; whatever its value, it implies --{port}-use-ssl"
        add(f"--{port}-use-ssl-mutual", type=boolean, help=mutual)
        add(f"--{port}-server-cert", default="", metavar="FILE", help=f"PEM file{same}")
        add(f"--{port}-server-key", default="", metavar="FILE", help=f"PEM file{same}")
        root = f"PEM file of the authorities that sign clients' certificates{same}"
        add(f"--{port}-root-cert", default="", metavar="FILE", help=root)


def tls_files(parser: argparse.ArgumentParser, values: argparse.Namespace, port: str) -> TlsFiles | None:
    """Return the TLS files of a port; None for plain text. Ends the process where a required file is missing."""
    mutual = getattr(values, f"{port}_use_ssl_mutual")
    if mutual is None and not getattr(values, f"{port}_use_ssl"):
        return None
    certificate, key, root = (_file(values, port, name) for name in ("server_cert", "server_key", "root_cert"))
    if not (certificate and key):
        parser.error(f"--{port}-use-ssl needs --{port}-server-cert and --{port}-server-key")
    if mutual and not root:
        parser.error(f"--{port}-use-ssl-mutual needs --{port}-root-cert")
    return TlsFiles(certificate=certificate, key=key, clients_root=root if mutual else "", flags=port)


def _file(values: argparse.Namespace, port: str, name: str) -> str:
    own: str = getattr(values, f"{port}_{name}")
    return own or (getattr(values, f"http_{name}") if port == "metrics" else "")
