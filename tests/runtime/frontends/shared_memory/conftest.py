"""A server that takes shared memory, clients of both protocols, and a memory object of theirs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import grpc
import pytest
import tritonclient.grpc
import tritonclient.http
from tests.memory_objects import MemoryObject, memory_object
from tests.runtime.frontends.conftest import Running, client_regions
from tritonclient.grpc import service_pb2_grpc

SIZE = 8192


@dataclass
class Client:
    """tritonclient of one protocol at `address`; `api` is its module."""

    api: Any
    inner: Any
    address: str

    def again(self) -> Any:
        """Return another client of the server, for another thread."""
        return self.api.InferenceServerClient(self.address)

    def input(self, name: str, datatype: str, shape: list[int], size: int, offset: int = 0, region: str = "r") -> Any:
        """Return an input in a region."""
        made = self.api.InferInput(name, shape, datatype)
        made.set_shared_memory(region, size, offset=offset)
        return made

    def output(self, name: str, size: int, offset: int = 0, region: str = "r") -> Any:
        """Return an output in a region."""
        made = self.api.InferRequestedOutput(name)
        made.set_shared_memory(region, size, offset=offset)
        return made

    def regions(self, kind: str = "system") -> dict[str, dict[str, Any]]:
        """Return the registered regions by name, numbers as numbers."""
        status = getattr(self.inner, f"get_{kind}_shared_memory_status")()
        if isinstance(status, list):
            return {region["name"]: region for region in status}
        fields = (
            {field.name for field in next(iter(status.regions.values())).DESCRIPTOR.fields} if status.regions else ()
        )
        return {name: {field: getattr(region, field) for field in fields} for name, region in status.regions.items()}


@pytest.fixture(params=["http", "grpc"])
def client(request: pytest.FixtureRequest, running: Running) -> Iterator[Client]:
    """Yield a client of each protocol in turn; the server lets clients register regions."""
    running.plane.regions = client_regions(allowed=True)
    api = tritonclient.http if request.param == "http" else tritonclient.grpc
    port = running.http if request.param == "http" else running.grpc
    address = f"127.0.0.1:{port}"
    with api.InferenceServerClient(address) as inner:
        yield Client(api, inner, address)


@pytest.fixture
def stub(running: Running) -> Iterator[Any]:
    running.plane.regions = client_regions(allowed=True)
    with grpc.insecure_channel(f"127.0.0.1:{running.grpc}") as channel:
        yield service_pb2_grpc.GRPCInferenceServiceStub(channel)


@pytest.fixture
def made() -> Iterator[MemoryObject]:
    """Yield an object of two pages of zeros."""
    with memory_object(bytes(SIZE)) as made:
        yield made
