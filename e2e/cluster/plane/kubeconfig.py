"""Kubeconfig files, with everything they refer to inside."""

import base64
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who asks: a bearer token, or a client certificate with its key (paths)."""

    token: str | None = None
    certificate: Path | None = None
    key: Path | None = None

    def fields(self) -> dict[str, str]:
        """Return the `user` entry of a kubeconfig."""
        if self.token is not None:
            return {"token": self.token}
        if self.certificate is None or self.key is None:
            raise ValueError("credentials need a token, or a certificate and its key")
        return {"client-certificate-data": _base64(self.certificate), "client-key-data": _base64(self.key)}


def document(server: str, authority: Path, credentials: Credentials, namespace: str = "default") -> dict[str, Any]:
    """Return a kubeconfig of one cluster, one user and one context."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "argosy", "cluster": {"server": server, "certificate-authority-data": _base64(authority)}}
        ],
        "users": [{"name": "user", "user": credentials.fields()}],
        "contexts": [{"name": "argosy", "context": {"cluster": "argosy", "user": "user", "namespace": namespace}}],
        "current-context": "argosy",
    }


def write(path: Path, content: dict[str, Any]) -> Path:
    """Write a kubeconfig that only its owner reads."""
    temporary = path.with_name(f".{path.name}.new")
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        yaml.safe_dump(content, file)
    temporary.rename(path)
    return path


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
