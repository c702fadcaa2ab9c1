"""Each client over TLS, with a certificate of its own, which the server asks for."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.clients import four
from tests.runtime.authority import Authority
from tests.serve.conftest import AddModel, Start, add_model, serve
from tests.serve.process import wait_until
from tritonclient.utils import InferenceServerException

__all__ = ["add_model", "serve"]

REFUSED = (InferenceServerException, HTTPException, aiohttp.ClientError, OSError)
"""What the clients raise where a connection is closed."""


def _options(name: str, authority: Authority, own: tuple[Path, Path] | None) -> dict[str, Any]:
    """Return how a client is told of the authority and, if it has one, its certificate and key."""
    certificate, key = own or (None, None)
    if name.startswith("grpc"):
        files = {"root_certificates": authority.root, "private_key": key, "certificate_chain": certificate}
        return {"ssl": True, **{option: file and str(file) for option, file in files.items()}}
    if name == "http":
        files = {"ca_certs": authority.root, "keyfile": key, "certfile": certificate}
        return {"ssl": True, "ssl_options": {option: str(file) for option, file in files.items() if file}}
    context = ssl.create_default_context(cafile=str(authority.root))
    if own:
        context.load_cert_chain(*own)
    return {"ssl": True, "ssl_context": context}


@contextmanager
def _connected(name: str, addresses: list[str], authority: Authority, own: tuple[Path, Path] | None) -> Iterator[Any]:
    client = four.connect(name, *addresses, **_options(name, authority, own))
    try:
        yield client
    finally:
        four.close(client)


def test_clients_with_a_certificate_are_answered_and_others_refused(
    serve: Start, add_model: AddModel, tmp_path: Path
) -> None:
    add_model("echo")
    authority = Authority(tmp_path)
    certificate, key = authority.issue("served")
    files = f"server-cert={certificate}", f"server-key={key}", f"root-cert={authority.root}"
    flags = [f"--{port}-{flag}" for port in ("http", "grpc") for flag in ("use-ssl-mutual=true", *files)]
    server = serve(*flags)
    server.wait_for_ports()
    addresses = [f"localhost:{server.ports[port]}" for port in ("HTTP", "GRPCInference")]
    own = authority.issue("client")
    for name in four.MODULES:
        with _connected(name, addresses, authority, own) as client:
            wait_until(client.is_server_ready, server.log)
            assert client.infer("echo", client.tensors({"X": ("INT32", [7])})).as_numpy("Y").tolist() == [7]
        with _connected(name, addresses, authority, None) as client, pytest.raises(REFUSED):
            client.is_server_live()
