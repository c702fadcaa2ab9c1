"""A server whose engine batches token by token, as vLLM and the runtime's transformers backend do."""

from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf

from argosy.autoscaling.decision import Allocation
from argosy.simulation.servers.served import Served
from argosy.simulation.traces import Floats


@dataclass(frozen=True, slots=True)
class EngineCurve:
    """Seconds of one step by how many sequences run: `step_s[n - 1]` for n of them, up to the most that run at once;
    and of one token of a prompt, while which nothing else is generated. ValueError where it cannot be so.
    """

    step_s: tuple[float, ...]
    prompt_token_s: float = 0.0

    def __post_init__(self) -> None:
        if not self.step_s or any(not item > 0 for item in self.step_s):
            numbers = ", ".join(f"{item:g}" for item in self.step_s) or "none"
            raise ValueError(f"step_s must be one positive number for each count of sequences; found {numbers}")
        if not self.prompt_token_s >= 0:
            raise ValueError(f"prompt_token_s must not be negative; found {self.prompt_token_s}")

    @property
    def max_running(self) -> int:
        """The most sequences that run at once."""
        return len(self.step_s)

    def throughput(self, prompt: float, output: float) -> float:
        """Return the requests per second of these sizes that a full engine completes."""
        most = self.max_running
        return 1 / (prompt * self.prompt_token_s + output * self.step_s[-1] / most)


class EngineServer:
    """Sequences that are generated together, first come, first admitted. A sequence ends after its tokens' steps."""

    def __init__(self, curve: EngineCurve, prompts: Floats, outputs: Floats, from_s: float) -> None:
        self._curve, self._prompts, self._outputs = curve, prompts, outputs
        self._waiting: list[tuple[float, int]] = []
        self._head = 0
        self._running: list[tuple[float, float, float]] = []
        self._clock = from_s
        self._steps = 0.0
        self.served = Served()

    def offer(self, arrivals: list[float], numbers: range) -> None:
        """Queue requests by their times of arrival; `numbers` are their indexes in the trace, which has their sizes."""
        self._waiting += zip(arrivals, numbers, strict=True)

    def change(self, allocation: Allocation, now: float) -> None:
        """Change nothing: an engine has one instance and batches by itself."""

    def unfinished(self, until: float) -> float:
        """Return 0: the work is counted as time passes."""
        return 0.0

    @property
    def queued(self) -> int:
        """Requests that wait for the engine or are in it."""
        return len(self._waiting) - self._head + len(self._running)

    @property
    def running(self) -> int:
        """Requests that the engine generates."""
        return len(self._running)

    @property
    def idle_from(self) -> float:
        """When the last step ended."""
        return self._clock

    def advance(self, until: float) -> None:
        """Admit, generate and end sequences, one event after another."""
        while self._clock <= until:
            arrives = self._waiting[self._head][0] if self._head < len(self._waiting) else inf
            has_slot = len(self._running) < self._curve.max_running
            if has_slot and arrives <= self._clock:
                self._admit()
            elif not self._running:
                if arrives > until:
                    break
                self._clock = arrives
            else:
                self._generate(min(until, arrives if has_slot else inf), until)
                if self._clock >= until:
                    break

    def _admit(self) -> None:
        arrived, number = self._waiting[self._head]
        self._head += 1
        started = self._clock
        prefill = float(self._prompts[number]) * self._curve.prompt_token_s
        self._clock += prefill
        self.served.busy_s += prefill
        self.served.between_s += prefill * len(self._running)
        self.served.prompted.append(arrived)
        self.served.first.append(self._clock + self._curve.step_s[len(self._running)])
        ends = self._steps + max(1.0, float(self._outputs[number]))
        heappush(self._running, (ends, arrived, started))

    def _generate(self, event: float, until: float) -> None:
        """Generate until the event, or until the first sequence ends before it."""
        step = self._curve.step_s[len(self._running) - 1]
        ends = self._clock + (self._running[0][0] - self._steps) * step
        at = min(ends, max(event, self._clock))
        steps = (at - self._clock) / step
        self._steps += steps
        self.served.tokens += steps * len(self._running)
        self.served.busy_s += at - self._clock
        self.served.between_s += (at - self._clock) * len(self._running)
        self._clock = at
        if at == ends and ends <= until:
            self._steps = self._running[0][0]
            self._end()

    def _end(self) -> None:
        _, arrived, started = heappop(self._running)
        served = self.served
        served.arrived.append(arrived)
        served.started.append(started)
        served.ended.append(self._clock)
        served.over.append(self._clock)
        served.lasting.append(self._clock - started)
