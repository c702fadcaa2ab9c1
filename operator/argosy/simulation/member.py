"""One model in the simulated fleet: its replicas start, serve, drain and end."""

from dataclasses import dataclass, field

import numpy as np

from argosy.autoscaling.decision import NO_EJECTION, Allocation, Ejection
from argosy.autoscaling.metrics.signals import ServerQueue
from argosy.simulation.outcome import Change
from argosy.simulation.recorder import Recorder, Sample, State
from argosy.simulation.servers.batching import BatchingServer
from argosy.simulation.servers.engine import EngineCurve, EngineServer
from argosy.simulation.servers.served import Served, Server
from argosy.simulation.service import ServiceCurve
from argosy.simulation.traces import Floats, Trace


@dataclass(frozen=True, slots=True)
class Workload:
    """A model and its requests. `budget_s`: how long a request may take (to its first token, if an engine generates).
    `startup_s`: from the request of a replica until it is ready; `in_place_s`: until other instances or another window
    take effect. A replica uses `gpus` (0 to 1 is a share of one).
    """

    name: str
    trace: Trace
    curve: ServiceCurve | EngineCurve
    budget_s: float
    start: Allocation = field(default_factory=Allocation)
    startup_s: float = 30.0
    in_place_s: float = 1.0
    gpus: float = 1.0


@dataclass(slots=True)
class Replica:
    """A server with the seconds of the trace at which it was requested, becomes ready, and began to drain."""

    name: str
    server: Server
    requested_s: float
    ready_s: float
    drained_s: float = 0.0

    @property
    def gone_s(self) -> float:
        """When its GPUs are free, once no request waits there."""
        return max(self.drained_s, self.server.idle_from)


@dataclass(slots=True)
class Member:
    """The state of one workload at `now`. Requests go to replicas in turn, except for those of `ejection`; they are
    queued while there are none.
    """

    workload: Workload
    allocation: Allocation
    recorder: Recorder
    now: float = 0.0
    ready: list[Replica] = field(default_factory=list)
    starting: list[Replica] = field(default_factory=list)
    draining: list[Replica] = field(default_factory=list)
    queued_requests: list[float] = field(default_factory=list)
    ejection: Ejection = NO_EJECTION
    gpu_s: float = 0.0
    changes: list[Change] = field(default_factory=list)
    latencies: list[Floats] = field(default_factory=list)
    _arrived: int = 0
    _turn: int = 0
    _unfinished: float = 0.0
    _made: int = 0

    @property
    def replicas(self) -> int:
        """The replicas that use GPUs."""
        return len(self.ready) + len(self.starting) + len(self.draining)

    @property
    def next_arrival(self) -> float | None:
        """When the next request arrives."""
        arrivals = self.workload.trace.arrivals
        return float(arrivals[self._arrived]) if self._arrived < len(arrivals) else None

    def begin(self) -> None:
        """Start with the first replicas ready."""
        self.ready = [self._replica(0.0) for _ in range(self.allocation.replicas)]

    def _replica(self, startup_s: float) -> Replica:
        self._made += 1
        ready = self.now + startup_s
        return Replica(str(self._made), self._server(ready), self.now, ready)

    def _server(self, from_s: float) -> Server:
        trace, curve = self.workload.trace, self.workload.curve
        if isinstance(curve, ServiceCurve):
            return BatchingServer(curve, self.allocation, from_s, self._made)
        ones = np.ones(len(trace.arrivals))
        prompts, outputs = trace.prompts, trace.outputs
        return EngineServer(curve, ones if prompts is None else prompts, ones if outputs is None else outputs, from_s)

    def advance(self, until: float) -> Sample:
        """Let requests arrive and servers work until a second of the trace, and return the sample of that time."""
        trace, begun = self.workload.trace.arrivals, self.now
        last = int(np.searchsorted(trace, until, side="right"))
        came = trace[self._arrived : last]
        self._route(came.tolist())
        self._arrived, self.now = last, until
        working = self.ready + self.draining
        for replica in working:
            replica.server.advance(until)
        sample = self._sampled(begun, until, came, working)
        self.latencies.append(sample.first if isinstance(self.workload.curve, EngineCurve) else sample.latency)
        self._free_drained()
        return sample

    def _route(self, came: list[float]) -> None:
        away = self.ejection.among([replica.name for replica in self.ready])
        reached = [replica for replica in self.ready if replica.name not in away]
        count = len(reached)
        if not count:
            self.queued_requests += came
            return
        for index, replica in enumerate(reached):
            first = (index - self._turn) % count
            replica.server.offer(came[first::count], range(self._arrived + first, self._arrived + len(came), count))
        self._turn = (self._turn + len(came)) % count

    def _sampled(self, begun: float, until: float, came: Floats, working: list[Replica]) -> Sample:
        unfinished = sum(replica.server.unfinished(until) for replica in working)
        queued = sum(replica.server.queued for replica in working) + len(self.queued_requests)
        instances = len(self.ready) * self.allocation.instances
        running = sum(replica.server.running for replica in working)
        state = State(
            unfinished - self._unfinished,
            queued - running,
            running,
            len(self.ready),
            instances,
            len(self.queued_requests),
            tuple(ServerQueue(replica.name, replica.server.queued - replica.server.running) for replica in self.ready),
        )
        self._unfinished = unfinished
        work = [replica.server.served for replica in working]
        sample = self.recorder.add(begun, until, came, work, state)
        for replica in working:
            replica.server.served = Served()
        return sample

    def _free_drained(self) -> None:
        """Free the GPUs of draining servers that have no requests left."""
        for replica in [
            replica for replica in self.draining if not replica.server.queued and replica.gone_s <= self.now
        ]:
            self.draining.remove(replica)
            self.gpu_s += replica.gone_s - replica.requested_s

    def become_ready(self, replica: Replica) -> None:
        """Route requests to a replica from now on, queued ones first."""
        if replica not in self.starting:
            return
        self.starting.remove(replica)
        self.ready.append(replica)
        replica.server.change(self.allocation, self.now)
        replica.server.offer(self.queued_requests, range(self._arrived - len(self.queued_requests), self._arrived))
        self.queued_requests = []

    def scale(self, desired: Allocation, reason: str) -> list[Replica]:
        """Set the allocation, and return the replicas that begin to start. Starting replicas are removed first,
        then the newest.
        """
        if desired != self.allocation:
            self.changes.append(Change(self.now, self.allocation, desired, reason))
        self.allocation = desired
        surplus = len(self.ready) + len(self.starting) - desired.replicas
        while surplus > 0 and self.starting:
            self.gpu_s += self.now - self.starting.pop().requested_s
            surplus -= 1
        for _ in range(surplus):
            self.draining.append(self.ready.pop())
            self.draining[-1].drained_s = self.now
        started = [self._replica(self.workload.startup_s) for _ in range(-surplus)]
        self.starting += started
        return started

    def change_in_place(self, allocation: Allocation) -> None:
        """Set the instances and the batching of the servers that run."""
        for replica in self.ready:
            replica.server.change(allocation, self.now)

    def end(self) -> float:
        """Let ready or starting replicas answer all requests, and return the seconds that GPUs were in use."""
        waits_until = self.now
        holding = [*self.ready, *self.starting, *self.draining]
        gpu_s = self.gpu_s + sum(waits_until - replica.requested_s for replica in holding)
        if self.queued_requests and not self.ready and self.starting:
            self.become_ready(self.starting[0])
        last, step = max([waits_until, *(replica.server.idle_from for replica in self.ready + self.draining)]), 600.0
        while any(replica.server.queued for replica in self.ready + self.draining):
            last, step = last + step, 2 * step
            self.advance(last)
        self.advance(last + 600.0)
        return gpu_s * self.workload.gpus
