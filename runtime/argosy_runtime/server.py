"""The server: flags in, ports open, models loaded, a clean end. `argosy serve`, `python -m argosy_runtime.server`."""

import asyncio
import gc
import logging
import resource
import signal
import ssl
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import uvloop

from argosy_common.idle import IdleWait

from .backends.devices import ipc
from .backends.devices.pinned_pool import PINNED_POOL
from .backends.environments.requirements import end_installations
from .backends.environments.unpacked import remove_unused
from .cpus import limit_threads
from .dataplane import DataPlane
from .errors import ServingError
from .execution.devices import GpuDevice, visible_gpus
from .flags import ServerOptions, parse
from .frontends import metrics
from .frontends.grpc import listener as grpc
from .frontends.grpc.listener import GrpcListener
from .frontends.http import app as http
from .frontends.http.clouds import serving as clouds
from .frontends.http.openai.app import OpenAiOptions
from .frontends.http.wire.listener import HttpListener
from .frontends.tls.files import TlsFiles
from .frontends.tls.served import ServedCertificate, follow
from .repository.options import ControlMode
from .shared_memory import system
from .shared_memory.regions import ClientRegions
from .telemetry.exposition import Family
from .telemetry.machine.cpu import CpuReader, cpu_families
from .telemetry.machine.gpu import Gpu, GpuReader, gpu_families
from .telemetry.machine.sampling import MachineSampling, Reader

_log = logging.getLogger("argosy.server")
_Listener = HttpListener | GrpcListener
_DRAIN_POLL_S = 0.1
_MOST_FILES = 1 << 20
# Requests make hardly any cycles; at Python's own thresholds each few hundred of them would pay for a collection.
_GC_THRESHOLDS = (50_000, 20, 20)


class Server:
    """One data plane and its front ends."""

    def __init__(self, options: ServerOptions) -> None:
        self._options = options
        gpus = visible_gpus()
        self._machine = _machine_sampling(options, gpus)
        self._certificates: list[ServedCertificate] = []
        self.dataplane = DataPlane(
            options.repository,
            {gpu.ordinal: gpu.compute_capability for gpu in gpus},
            options.server_id,
            options.strict_readiness,
            log=options.log,
            machine=self._machine,
            certificates=lambda: [certificate.state for certificate in self._certificates],
            tracing=options.tracing,
            regions=ClientRegions(system.open_memory, ipc.open_memory, allowed=options.client_shm),
            gpu_uuids={gpu.ordinal: gpu.uuid for gpu in gpus},
        )
        self._listeners: list[_Listener] = []
        self._apis: list[HttpListener] = []
        """Those over HTTP to which clients send requests."""
        self._poll: asyncio.Task[None] | None = None
        self._following: list[asyncio.Task[None]] = []
        """What reads files of secrets again as they change."""

    async def start(self) -> dict[str, ServingError]:
        """Open the ports, then load the models; health answers meanwhile. Return the models that failed."""
        self._machine.start()
        await self._listen()
        # Files that killed servers left behind are deleted meanwhile.
        failures, _ = await asyncio.gather(self.dataplane.start(), asyncio.to_thread(remove_unused))
        polls = self._options.repository.control_mode is ControlMode.POLL and self.dataplane.failure is None
        if polls and self._options.repository.poll_seconds > 0:
            self._poll = asyncio.get_running_loop().create_task(self._poll_forever())
        return failures

    async def _listen(self) -> None:
        options = self._options
        if options.http_port is not None:
            where = http.HttpOptions(
                host=options.http_address,
                port=options.http_port,
                reuse_port=options.reuse_http_port,
                max_input_size=options.max_input_size,
                header_forward_pattern=options.http_header_forward_pattern,
                restricted=options.http_restricted,
                timeouts=options.http_timeouts,
                openai=options.openai if options.openai_port is None else None,
                metrics=options.metrics_port is not None,
                tls=self._tls("http", options.http_tls),
            )
            self._add_api(await http.serve(self.dataplane, where))
            _log.info("Started HTTPService at %s:%d", options.http_address, self._listeners[-1].port)
            if where.openai is not None:
                self._report_openai(options.http_address)
        await self._listen_clouds()
        if options.openai is not None:
            await self._listen_openai(options.openai)
        if options.grpc_port is not None:
            listen = grpc.GrpcListenOptions(
                host=options.grpc_address,
                port=options.grpc_port,
                reuse_port=options.reuse_grpc_port,
                header_forward_pattern=options.grpc_header_forward_pattern,
                restricted=options.grpc_restricted,
                tls=self._tls("grpc", options.grpc_tls),
                compression=options.grpc_compression,
                keepalive=options.grpc_keepalive,
                reflection=options.grpc_reflection,
                max_input_size=options.max_input_size,
            )
            self._listeners.append(await grpc.serve(self.dataplane, listen))
            _log.info("Started GRPCInferenceService at %s:%d", options.grpc_address, self._listeners[-1].port)
        if options.metrics_port is not None:
            scrape = metrics.MetricsOptions(
                host=options.metrics_address,
                port=options.metrics_port,
                timeouts=options.http_timeouts,
                tls=self._tls("metrics", options.metrics_tls),
            )
            self._listeners.append(await metrics.serve(self.dataplane, scrape))
            _log.info("Started Metrics Service at %s:%d", options.metrics_address, self._listeners[-1].port)
        if self._certificates:
            self._following.append(asyncio.get_running_loop().create_task(follow(self._certificates)))

    async def _listen_clouds(self) -> None:
        options = self._options
        as_http = http.HttpOptions(
            host=options.http_address,
            max_input_size=options.max_input_size,
            restricted=options.http_restricted,
            timeouts=options.http_timeouts,
        )
        if options.sagemaker is not None:
            amazon = replace(as_http, tls=self._tls("sagemaker", options.http_tls))
            self._add_api(await clouds.serve_sagemaker(self.dataplane, amazon, options.sagemaker))
            _log.info("Started Sagemaker HTTPService at %s:%d", options.http_address, self._listeners[-1].port)
        if options.vertex_ai is not None:
            google = replace(as_http, tls=self._tls("vertex_ai", options.http_tls))
            self._add_api(await clouds.serve_vertex_ai(self.dataplane, google, options.vertex_ai))
            _log.info("Started Vertex AI HTTPService at %s:%d", options.http_address, self._listeners[-1].port)

    def _tls(self, port: str, files: TlsFiles | None) -> ssl.SSLContext | None:
        """Return what a port needs for TLS; its certificate is replaced as its files change."""
        if files is None:
            return None
        certificate = ServedCertificate(port, files)
        self._certificates.append(certificate)
        return certificate.context

    async def _listen_openai(self, openai: OpenAiOptions) -> None:
        """Open the port of OpenAI's API, if it has one of its own, and read the API keys again as they change."""
        options = self._options
        if options.openai_port is not None:
            where = http.OpenAiListen(
                options.openai_address,
                options.openai_port,
                openai,
                options.http_timeouts,
                self._tls("openai", options.http_tls),
            )
            self._add_api(await http.serve_openai(self.dataplane, where))
            self._report_openai(options.openai_address)
        if openai.guard is not None:
            self._following.append(asyncio.get_running_loop().create_task(openai.guard.follow()))

    def _report_openai(self, address: str) -> None:
        scheme = "http" if self._options.http_tls is None else "https"
        _log.info("OpenAI API at %s://%s:%d/v1", scheme, address, self._listeners[-1].port)

    def _add_api(self, listener: HttpListener) -> None:
        self._listeners.append(listener)
        self._apis.append(listener)

    async def _poll_forever(self) -> None:
        while True:
            await asyncio.sleep(self._options.repository.poll_seconds)
            try:
                await self.dataplane.poll()
            except Exception:
                _log.exception("cannot look into the model repository; it is looked at again")

    async def drain(self) -> None:
        """Report not ready, and go on answering until all requests are answered, none has come for
        `--drain-quiet-secs`, and no client keeps a connection that it may use again.
        """
        self.dataplane.drain()
        for listener in self._listeners:
            listener.drain()
        loop = asyncio.get_running_loop()
        idle = IdleWait(self._options.drain, self.dataplane.requests, loop.time())
        while True:
            now = loop.time()
            expected = any(listener.expects(now) for listener in self._apis)
            if idle.reached(self.dataplane.requests, now, is_open=self.dataplane.owes, is_expected=expected):
                return
            await asyncio.sleep(_DRAIN_POLL_S)

    async def stop(self) -> None:
        """Refuse further requests, answer the accepted ones, release the models.

        Ports answer until the last request is answered, and say that the server ends; that of gRPC only if it is to.
        """
        for task in (self._poll, *self._following):
            if task is not None:
                task.cancel()
        loop = asyncio.get_running_loop()
        end = loop.time() + self._options.exit_timeout
        for listener in self._listeners:
            if isinstance(listener, HttpListener) or self._options.grpc_answer_while_stopping:
                listener.drain()
            else:
                listener.finish()
        _log.info("Waiting for in-flight requests to complete.")
        await self.dataplane.answered(self._options.exit_timeout)
        await asyncio.gather(*(listener.stop(max(0.0, end - loop.time())) for listener in self._listeners))
        self._machine.stop()
        end_installations()
        await self.dataplane.close(max(0.0, end - loop.time()))
        await asyncio.to_thread(remove_unused)


def _machine_sampling(options: ServerOptions, gpus: Sequence[GpuDevice]) -> MachineSampling:
    """Return the sampling of what the flags allow."""
    readers: list[tuple[Reader, list[Family]]] = []
    if options.cpu_metrics:
        readers.append((CpuReader(), cpu_families()))
    if options.gpu_metrics:
        readers.append((GpuReader([Gpu(gpu.ordinal, gpu.uuid, gpu.name) for gpu in gpus]), gpu_families()))
    return MachineSampling(readers, options.metrics_interval)


async def run(options: ServerOptions) -> int:
    """Serve until SIGINT or SIGTERM, then drain unless a second one comes. Return the process' exit code."""
    stopping, hurrying = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, lambda: (hurrying if stopping.is_set() else stopping).set())
    _freeze_code()
    server = Server(options)
    starting = loop.create_task(server.start())
    code = 0
    try:
        if await _done_before(stopping, starting):
            gc.collect()
            code = _report(options, starting.result(), server.dataplane.failure)
            if code == 0:
                await stopping.wait()
                _log.info("draining")
                await _done_before(hurrying, loop.create_task(server.drain()))
    except ServingError as error:
        _log.error("%s", error.message)
        code = 1
    finally:
        _log.info("stopping")
        await server.stop()
    return code


async def _done_before(event: asyncio.Event, work: "asyncio.Task[Any]") -> bool:
    """Return whether the work is done, or has failed, before the event, which cancels it."""
    waiting = asyncio.get_running_loop().create_task(event.wait())
    await asyncio.wait({work, waiting}, return_when=asyncio.FIRST_COMPLETED)
    done = work.done()
    for task in (work, waiting):
        task.cancel()
    await asyncio.gather(work, waiting, return_exceptions=True)
    return done


def _freeze_code() -> None:
    """Freeze the imported code, which the collector need not traverse again, and have it run less often.

    To be called before any model is loaded: frozen objects are never collected, and models are unloaded.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)


def _report(options: ServerOptions, failures: dict[str, ServingError], failure: ServingError | None) -> int:
    """Log how the start went. Return 1 where the server is to end."""
    if failure is not None:
        kind = failure.kind.value.capitalize().replace("_arg", " argument")
        _log.error("creating server: %s - %s", kind, failure.message)
    elif failures:
        _log.error("failed to load: %s", ", ".join(sorted(failures)))
        _log.error("creating server: Internal - failed to load all models")
    else:
        _log.info("ready")
        return 0
    if options.exit_on_error and failures:
        _log.error("exiting, because --exit-on-error is true; with false the other models would be served")
    return int(options.exit_on_error)


def _allow_many_clients() -> None:
    """Raise the limit of open files, of which each connection is one, to the most that is allowed."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = _MOST_FILES if most == resource.RLIM_INFINITY else min(most, _MOST_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, most))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the server with these arguments, or with those of the command line. Return the exit code."""
    options = parse(sys.argv[1:] if arguments is None else arguments)
    options.log.install(sys.stdout, sys.stderr)
    _allow_many_clients()
    limit_threads()
    PINNED_POOL.total = options.pinned_bytes
    for flag in options.without_effect:
        _log.warning("%s has no effect on this server", flag)
    for setting in options.repository.metrics.unknown:
        _log.warning("--metrics-config=%s has no effect on this server", setting)
    for setting in options.repository.metrics.undecided:
        _log.warning("--metrics-config=%s has no effect: it is neither true nor false", setting)
    for problem in options.repository.metrics.wrong_quantiles:
        _log.error("--metrics-config=summary_quantiles: %s", problem)
    return uvloop.run(run(options))


if __name__ == "__main__":
    sys.exit(main())
