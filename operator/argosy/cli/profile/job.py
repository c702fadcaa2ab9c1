"""A measurement in a cluster: the Job, its progress, its result, its end. It is removed, whatever happens."""

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeVar

from argosy.api import Resource
from argosy.api.documents import parse_body
from argosy.api.values.capability import CapabilityRange
from argosy.bench.profile.lines import PROGRESS, RESULT, Measured, result_of
from argosy.cli.profile.pod_state import Phase, PodState, state_of
from argosy.cluster.client.access import default_namespace
from argosy.cluster.client.connection import Connection
from argosy.cluster.client.errors import ApiError, NotFoundError, UnreachableError
from argosy.cluster.client.kinds import JOB, POD, RESOURCES, Key
from argosy.local.profiling.in_job import VARIABLE, request_text
from argosy.local.profiling.manifest import Profiled
from argosy.local.profiling.sweep import Steps
from argosy.planning.demand.footprint import footprint_of
from argosy.planning.nodes.slices import GPU_RESOURCE
from argosy.planning.required_nodes import requirements_of
from argosy.planning.requirements import NodeRequirements
from argosy.render.workloads.metadata import pods_of_pool
from argosy.render.workloads.profiling import ProfileJob, profile_job

MANAGER: Final = "argosy-profile"
_LONGEST_REQUEST: Final = 100_000
"""Bytes of a variable that every kernel passes on."""
_PAUSE_S: Final = 1.0
_LAST_LINES: Final = 20
_DELETE_S: Final = 10.0


Result = TypeVar("Result")


class JobError(Exception):
    """The measurement cannot be made in the cluster; the message says why."""


TIMEOUT_S, WAIT_S = 3600.0, 300.0


@dataclass(frozen=True, slots=True)
class JobSettings:
    """The options of a measurement in a cluster. `gpu_type`: a product, or a range of compute capabilities; `timeout`
    and `wait` in seconds: for all of it, and for a node.
    """

    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str | None = None
    gpu_type: str | None = None
    image: str | None = None
    timeout: float = TIMEOUT_S
    wait: float = WAIT_S


def declared_in_cluster(name: str, settings: JobSettings) -> list[Resource]:
    """Return the model of a namespace with its pool, as they are declared. Raises JobError."""

    async def read(connection: Connection, namespace: str) -> list[Resource]:
        model = await _parsed(connection, "InferenceModel", (namespace, name))
        pool = getattr(model, "pool_key", "").partition("/")[2]
        return [model, await _parsed(connection, "ServingPool", (namespace, pool))]

    return _connected(settings, read)


async def _parsed(connection: Connection, kind: str, key: Key) -> Resource:
    try:
        resource, problems = parse_body(await connection.get(RESOURCES[kind], key))
    except NotFoundError as error:
        raise JobError(f"there is no {kind} {key[1]} in the namespace {key[0]}: {error}") from error
    if resource is None:
        raise JobError("; ".join(map(str, problems)))
    return resource


def measured_by_job(profiled: Profiled, steps: Steps, settings: JobSettings, report: Callable[[str], None]) -> Measured:
    """Measure in a Job, and return the result. Raises JobError, and CancelledError at a signal, once it is removed."""

    async def measure(connection: Connection, namespace: str) -> Measured:
        _cancel_at_signals()
        job = _job(profiled, steps, settings, namespace)
        image = job.image or await _image_of_servers(connection, job)
        created = await connection.create(JOB, profile_job(replace(job, image=image)), manager=MANAGER)
        key = (namespace, str(created["metadata"]["name"]))
        report(f"Job {'/'.join(key)}: {image}")
        try:
            return await _Followed(connection, key, settings, report).result()
        finally:
            await _removed(connection, key, str(created["metadata"]["uid"]))

    chosen = settings if settings.namespace or not profiled.model.namespace else _in(settings, profiled)
    return _connected(chosen, measure)


def _in(settings: JobSettings, profiled: Profiled) -> JobSettings:
    return replace(settings, namespace=profiled.model.namespace)


def _connected(settings: JobSettings, work: Callable[[Connection, str], Awaitable[Result]]) -> Result:
    async def run() -> Result:
        async with Connection.open(settings.kubeconfig, settings.context) as connection:
            return await work(connection, namespace)

    try:
        namespace = settings.namespace or default_namespace(settings.kubeconfig, settings.context)
        return asyncio.run(run())
    except ApiError as error:
        raise JobError(str(error)) from error


def _job(profiled: Profiled, steps: Steps, settings: JobSettings, namespace: str) -> ProfileJob:
    model, request = profiled.model, request_text(profiled, steps)
    if len(request) > _LONGEST_REQUEST:
        raise JobError(
            f"the manifests have {len(request)} characters, and a Job takes {_LONGEST_REQUEST}; shorten them"
        )
    gpus = 0 if footprint_of(model).on_cpu and settings.gpu_type is None else model.spec.gpus or 1
    return ProfileJob(
        model=model,
        pool=profiled.pool,
        namespace=namespace,
        image=settings.image or profiled.pool.spec.runtime.image or "",
        variable=VARIABLE,
        request=request,
        gpus=gpus,
        requires=_requires(profiled, settings.gpu_type),
        deadline_s=max(1, round(settings.timeout)),
    )


def _requires(profiled: Profiled, gpu_type: str | None) -> NodeRequirements:
    """Return what the node must have: of the model, with the GPUs of `--gpu-type` in place of its own."""
    own = requirements_of(profiled.model)
    if gpu_type is None:
        return own
    try:
        return replace(own, products=frozenset(), capability=CapabilityRange.parse(gpu_type))
    except ValueError:
        return replace(own, products=frozenset((gpu_type,)), capability=CapabilityRange())


async def _image_of_servers(connection: Connection, job: ProfileJob) -> str:
    """Return the image that a server of the pool runs, with GPUs if some are needed. Raises JobError without one."""
    labels = ",".join(f"{name}={value}" for name, value in pods_of_pool(job.pool).items())
    async for page in connection.pages(POD, job.namespace, {"labelSelector": labels}):
        for pod in page["items"]:
            for container in pod["spec"]["containers"]:
                has_gpus = GPU_RESOURCE in ((container.get("resources") or {}).get("limits") or {})
                if container["name"] == "server" and has_gpus == bool(job.gpus):
                    return str(container["image"])
    kind = "with GPUs" if job.gpus else "on a CPU"
    raise JobError(
        f"--image: no server {kind} of the pool {job.pool.name} runs in {job.namespace}, whose image could be taken; "
        "name one"
    )


async def _removed(connection: Connection, key: Key, uid: str) -> None:
    with suppress(NotFoundError):
        async with asyncio.timeout(_DELETE_S):
            await connection.delete(JOB, key, uid)


@dataclass(slots=True)
class _Followed:
    """A Job until its end. `_shown`: the lines of its log that were printed."""

    connection: Connection
    key: Key
    settings: JobSettings
    report: Callable[[str], None]
    _shown: int = 0
    _message: str = ""

    async def result(self) -> Measured:
        """Return what was measured. Raises JobError."""
        began = time.monotonic()
        while True:
            state, pod = await self._state()
            lines = await self._lines(pod) if state.phase in (Phase.RUNNING, Phase.SUCCEEDED, Phase.FAILED) else []
            measured = next(filter(None, map(result_of, lines)), None)
            self._progress(state, lines)
            if measured is not None:
                return measured
            self._fail(state, lines, time.monotonic() - began)
            await asyncio.sleep(_PAUSE_S)

    def _fail(self, state: PodState, lines: Sequence[str], waited: float) -> None:
        if state.phase is Phase.UNSCHEDULABLE and waited > self.settings.wait:
            raise JobError(
                f"no node had room within {self.settings.wait:g} s ({state.message}); name another --gpu-type, free a "
                "GPU of that kind, or give it longer by --wait"
            )
        if state.phase is Phase.SUCCEEDED:
            raise JobError("the Job ended without a result; use an image of this release by --image")
        if state.phase is Phase.FAILED:
            last = [line.removeprefix(PROGRESS) for line in lines if not line.startswith(RESULT)][-_LAST_LINES:]
            raise JobError("\n  ".join([f"the measurement failed: {state.message}", *last]))

    def _progress(self, state: PodState, lines: Sequence[str]) -> None:
        message = f"{state.phase}: {state.message}" if state.message else ""
        if message and message != self._message:
            self.report(message)
        self._message = message
        for line in lines[self._shown :]:
            if line.startswith(PROGRESS):
                self.report(line.removeprefix(PROGRESS))
        self._shown = max(self._shown, len(lines))

    async def _state(self) -> tuple[PodState, str]:
        try:
            job = await self.connection.get(JOB, self.key)
            selector = {"labelSelector": f"job-name={self.key[1]}"}
            pods = [pod async for page in self.connection.pages(POD, self.key[0], selector) for pod in page["items"]]
        except NotFoundError as error:
            raise JobError(f"the Job was removed by something else: {error}") from error
        except UnreachableError as error:
            return PodState(Phase.WAITING, str(error)), ""
        return state_of(job, pods), str(pods[-1]["metadata"]["name"]) if pods else ""

    async def _lines(self, pod: str) -> list[str]:
        """Return the lines of the log so far; none while the kubelet has none."""
        with suppress(ApiError):
            return (await self.connection.log((self.key[0], pod))).splitlines()
        return []


def _cancel_at_signals() -> None:
    """Let a signal cancel this task, which then removes its Job; further ones change nothing."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    ended = False

    def end() -> None:
        nonlocal ended
        if not ended and task is not None:
            ended = task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, end)
