"""The data plane as the front ends see it, and the codecs' view of its models."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import DecoupledModelError, FaultyInputsError, ServingError, invalid, unsupported
from argosy_runtime.messages import Deliver, InferRequest, InferResponse, Submission
from argosy_runtime.modelconfig.shapes import first_fault
from argosy_runtime.protocol.model_view import ModelView, view_of
from argosy_runtime.protocol.orca import CacheLoad
from argosy_runtime.protocol.trace_settings import Settings
from argosy_runtime.shared_memory.regions import ClientRegions
from argosy_runtime.telemetry.log_settings import Setting


class DataPlane(Protocol):
    """Everything that a client can request of a server. Every method raises ServingError where it cannot answer.

    A version "" means the one that the model's `version_traffic` or its version policy decides: requests are divided by
    weight, everything else is about the version with the highest weight.
    """

    @property
    def regions(self) -> ClientRegions:
        """The shared memory that clients have registered."""

    def live(self) -> bool:
        """Return whether the server is live."""

    def ready(self) -> bool:
        """Return whether the server is ready for inference."""

    def model_ready(self, name: str, version: str) -> bool:
        """Return whether a model's version can answer."""

    def readiness_check(self, name: str = "", version: str = "") -> Awaitable[None] | None:
        """Have a model say itself whether it is ready, or all where `name` is empty; None if none of them does.

        To be awaited before `model_ready` or `ready`, which have what was said last.
        """

    def server_metadata(self) -> pb.ServerMetadataResponse:
        """Return the server's name, version and the extensions it supports."""

    def model_metadata(self, name: str, version: str) -> pb.ModelMetadataResponse:
        """Return a model's versions, platform and tensors."""

    def model_config(self, name: str, version: str) -> ModelConfig:
        """Return a model's complete configuration."""

    def statistics(self, name: str, version: str) -> pb.ModelStatisticsResponse:
        """Return the counters of a model's versions; of all models where `name` is empty."""

    def labels(self, name: str, version: str, output: str) -> Sequence[str]:
        """Return the classification labels of an output, in order; none where it has none."""

    async def index(self, ready_only: bool) -> pb.RepositoryIndexResponse:
        """Return the models of the repository: the same message while nothing changes, so it must not be modified."""

    async def load(self, name: str, config: str | None, files: Mapping[str, bytes]) -> None:
        """Load or reload a model; `config` is JSON that overrides its file, `files` replace the
        repository's.
        """

    async def divide(self, name: str) -> None:
        """Divide a serving model's requests among its versions as its configuration declares now; load nothing."""

    async def unload(self, name: str, unload_dependents: bool) -> None:
        """Unload a model."""

    async def register(self, repository: Path, folder: str, name: str) -> None:
        """Add a repository of models, whose model in `folder` gets the name `name`; load nothing."""

    def unregister(self, repository: Path) -> None:
        """Remove a repository that was registered; its models serve on."""

    def submit(self, request: InferRequest, deliver: Deliver, single: bool = False) -> Submission:
        """Start a request: any number of responses go to `deliver`, the last with `final`; maybe before this returns.

        Raises ServingError where the request may not enter; DecoupledModelError where it must be answered once
        (`single`) and its model answers any number of times.
        """

    async def demand(self, name: str, version: str) -> None:
        """Wait until a model serves that is loaded on demand; return at once for all others.

        Raises ServingError where it cannot be loaded.
        """

    def when_loaded(self, name: str, version: str, then: Callable[[ServingError | None], None]) -> bool:
        """Have a model loaded on demand, and call back when it serves, or with the error.

        Return False, and do neither, where it serves or is not loaded on demand.
        """

    def pin(self, requests: Sequence[InferRequest]) -> None:
        """Have one version answer requests that are one request to their client, where versions share the traffic.

        Raises ServingError where none can answer.
        """

    def log_settings(self) -> dict[str, Setting]:
        """Return what the server logs: Triton's names and values, in its order."""

    def change_log_settings(self, changes: Mapping[str, Setting]) -> None:
        """Change what is logged; `changes` have the types of `log_settings.KINDS`."""

    def cache_load(self, name: str) -> CacheLoad | None:
        """Return the load of the key-value caches that answer a model's requests; None where it is unknown."""

    def trace_settings(self, name: str) -> Settings:
        """Return the trace settings of a model, or those of all for ""; the names are the trace extension's."""

    def change_trace_settings(self, name: str, changes: Mapping[str, int | None]) -> None:
        """Change the trace settings of a model, or those of all for ""; see `telemetry.tracing.settings.Changes`."""

    def metrics(self) -> AsyncIterator[bytes]:
        """Return all metrics in Prometheus' text format, in pieces; other work of the loop goes on between them."""


def model_view(plane: DataPlane, name: str, version: str) -> ModelView:
    """Return the view of a model. Raises ServingError where there is none."""
    return view_of(
        plane.model_metadata(name, version),
        plane.model_config(name, version),
        lambda output: plane.labels(name, version, output),
    )


def lazy_view(plane: DataPlane, name: str, version: str) -> Callable[[], ModelView]:
    """Return a function that looks the view up, for codecs that seldom need it."""
    return lambda: model_view(plane, name, version)


def report_missing(plane: DataPlane, name: str, version: str) -> None:
    """Raise the error of a missing model, which precedes what is wrong with a request for it.

    One that requests load is not missing.
    """
    try:
        plane.model_config(name, version)
    except ServingError:
        if not plane.model_ready(name, version):
            raise


def of_endpoint(error: ServingError, endpoint: str) -> ServingError:
    """Return an error with the name of the endpoint, where it is about what the endpoint can do."""
    return unsupported(f"{endpoint} {error.message}") if isinstance(error, DecoupledModelError) else error


def reported(plane: DataPlane, name: str, version: str, endpoint: str, error: ServingError) -> ServingError:
    """Return the error of a request for one response that cannot be decoded: what is wrong with its model comes first.

    That is a model that is missing, or may not be asked for one response, or does not take such inputs.
    """
    try:
        report_missing(plane, name, version)
    except ServingError as missing:
        return missing
    if _is_decoupled(plane, name, version):
        return of_endpoint(DecoupledModelError(), endpoint)
    return named_fault(plane, name, version, error)


def _is_decoupled(plane: DataPlane, name: str, version: str) -> bool:
    try:
        return bool(plane.model_config(name, version).model_transaction_policy.decoupled)
    except ServingError:
        # It is not loaded yet, and the request waits for it.
        return False


def named_fault(plane: DataPlane, name: str, version: str, error: ServingError) -> ServingError:
    """Return the fault that is reported of a request with these: an error of its data gives way to what its model does
    not take.
    """
    if not isinstance(error, FaultyInputsError):
        return error
    try:
        config = plane.model_config(name, version)
    except ServingError:
        # It is not loaded yet.
        return error
    fault = first_fault(config, error.log_prefix, error.inputs, error.outputs, error.faults)
    return error if fault is None else invalid(fault)


def answer_view(plane: DataPlane, response: InferResponse, name: str, version: str) -> Callable[[], ModelView]:
    """Return a function that looks up the view of the version that made a response to a request for `version`.

    Where that version has left since, it is the view of the requested one.
    """

    def look_up() -> ModelView:
        try:
            return model_view(plane, name, version or response.model_version)
        except ServingError:
            return model_view(plane, name, version)

    return look_up
