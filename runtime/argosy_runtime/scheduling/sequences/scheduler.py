"""The scheduler of sequences: what begins one, what runs next, and what ends it.

A sequence begins with a request that has the START flag. It ends, and its slot goes to the backlog's first sequence,

    END       when its request with the END flag is dispatched (`direct`) or over (`oldest`)
    idle      when it had no request for `idle_ns`
    cancel    when one of its waiting requests is cancelled: the later ones are, too
    lost      when its instance ends: its waiting requests are refused
    released  when the model of an iterative sequence has finished its request

A sequence in the backlog ends when the timeout of one of its requests expires. A START within a sequence begins it
again in the same slot. With a limit of the queue, a request beyond it is refused, and its sequence goes on.
"""

from collections.abc import Mapping
from collections.abc import Sequence as Numbers
from typing import Final

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import FailureReason, ServingError, unavailable
from argosy_runtime.fifo_cache import FifoCache
from argosy_runtime.messages import InferRequest, InferResponse, Tensor
from argosy_runtime.modelconfig.parameters.queue_policies import queue_policies
from argosy_runtime.scheduling.queue_policy import QueuePolicy
from argosy_runtime.scheduling.queued_request import QueuedRequest, cancellation
from argosy_runtime.scheduling.scheduler import Batch, Decision, Refusal, Scheduler, Slots, not_rescheduled

from .controls import ControlInputs
from .instance import SlotsOfInstance
from .pool import SlotPool
from .rules import RequestRules, SequenceRules
from .sequence import Sequence, Step, UnnamedIds
from .states import ImplicitStates
from .timeouts import BacklogTimeouts, IdleSequences

# So many lost sequences are recorded, the latest, to say why they ended.
_RECORDED: Final = 1024
_MICROSECOND: Final = 1_000


class SequenceScheduler(Scheduler):
    """The sequences of one model version. `initial`: initial states by input, complete before the first request.

    `_open`: sequences that further requests may join, by the id that clients gave them. `_steps`: the requests that are
    not over.
    """

    def __init__(
        self, config: ModelConfig, initial: Mapping[str, Tensor], hold: int = 0, hold_backlog: int = 0
    ) -> None:
        self._rules = SequenceRules.of(config, hold, hold_backlog)
        self._holds = hold > 0 and not self._rules.oldest
        self._policy = _policy(config)
        self._requests = RequestRules(config)
        self._controls = ControlInputs(config)
        self._states = ImplicitStates(config, initial)
        self._pool = SlotPool(self._rules)
        self._idle = IdleSequences(self._rules.idle_ns)
        self._timeouts = BacklogTimeouts()
        self._open: dict[int | str, Sequence] = {}
        self._steps: dict[QueuedRequest, Step] = {}
        self._refused: list[Refusal] = []
        self._lost = FifoCache[int | str, str](_RECORDED)
        self._pending = 0
        self._unnamed = UnnamedIds()

    @property
    def pending(self) -> int:
        return self._pending

    @property
    def sequences(self) -> int:
        """Number of sequences that are not over, with and without waiting requests."""
        return self._pool.count

    def apply(self, config: ModelConfig) -> None:
        """Apply other limits of the queue. A change of sequence batching, or of the batch size, is a load."""
        self._policy = _policy(config)

    def continues(self, request: InferRequest) -> bool:
        """Return whether a request belongs to a sequence that has begun here."""
        return not request.sequence_start and request.sequence_id in self._open

    def refusal(self, request: InferRequest, size: int) -> ServingError | None:
        """Return why a request of `size` rows would be refused, None if it would not."""
        refusal = self._requests.refusal(request, size)
        identifier = request.sequence_id
        if refusal is not None or not identifier or request.sequence_start or identifier in self._open:
            return refusal
        return self._not_begun(identifier)

    def submit(self, queued: QueuedRequest) -> ServingError | None:
        request = queued.request
        refusal = self.refusal(request, queued.size)
        if refusal is not None:
            return refusal
        most = self._policy.max_size
        if most and self._pending >= most:
            return unavailable(f"{request.log_prefix}Exceeds maximum queue size", FailureReason.REJECTED)
        identifier = request.sequence_id
        if not identifier:
            self._append(Step(queued, self._begin_unnamed(), True, False), queued.arrived)
            return None
        sequence = self._open.get(identifier) or self._begin(identifier)
        self._append(Step(queued, sequence, request.sequence_start, request.sequence_end), queued.arrived)
        return None

    def cancel(self, queued: QueuedRequest) -> bool:
        step = self._steps.get(queued)
        if step is None:
            return False
        sequence = step.sequence
        if sequence.running is not step:
            at = sequence.waiting.index(step)
            del sequence.waiting[at]
            # None of a sequence in the backlog has run yet.
            self._cancel_from(sequence, at if sequence.instance else 0)
        elif self._withdraw(step):
            self._cancel_from(sequence, 0)
        else:
            return False
        del self._steps[queued]
        self._pending -= 1
        self._settle(sequence, queued.arrived)
        return True

    def drain(self) -> list[QueuedRequest]:
        waiting = [refusal.queued for refusal in self._refused]
        self._refused = []
        sequences = dict.fromkeys([*self._open.values(), *[step.sequence for step in self._steps.values()]])
        for queued, step in list(self._steps.items()):
            if step.sequence.running is not step or self._withdraw(step):
                del self._steps[queued]
                waiting.append(queued)
        for sequence in sequences:
            sequence.waiting.clear()
            self._end(sequence)
            self._settle(sequence, 0)
        self._pending = 0
        return waiting

    def advance(self, now: int, free: Numbers[int]) -> Decision:
        for sequence in self._idle.ended(now):
            self._end(sequence)
            self._settle(sequence, now)
        for sequence in self._timeouts.expired(now):
            text = "timeout of the corresponding sequence has been expired"
            self._refuse_waiting(sequence, unavailable(text, FailureReason.REJECTED))
            self._end(sequence)
            self._settle(sequence, now)
        decision = Decision()
        if self._holds:
            rules, pool = self._rules, self._pool
            self._holds = pool.waiting < rules.hold or pool.waiting_in_backlog < rules.hold_backlog
        for number in free if not self._holds else ():
            slots = self._pool.of(number)
            if slots is not None:
                self._dispatch(slots, now, decision)
        decision.refused, self._refused = self._refused, []
        self._pending -= len(decision.refused)
        decision.wake_at = _earliest(decision.wake_at, _earliest(self._idle.next, self._timeouts.next))
        return decision

    def completed(self, queued: QueuedRequest, response: InferResponse, now: int) -> None:
        """Take a response of a running request, before its instance is free and before the client gets it.

        Those of one batch come in the order of the batch, all of them before `advance`.
        """
        step = self._steps.get(queued)
        if step is not None:
            self._states.take(step.sequence, response)
            if response.final:
                self.request_over(queued, now)

    def request_over(self, queued: QueuedRequest, now: int) -> None:
        """Note that a request has ended, in whatever way."""
        step = self._steps.pop(queued, None)
        if step is None:
            return
        sequence = step.sequence
        if sequence.running is step:
            sequence.running = None
        if self._rules.iterative and not step.end:
            self._end(sequence)
        self._settle(sequence, now)

    def reschedule(self, queued: QueuedRequest, now: int) -> ServingError | None:
        """Queue a request again that its model has released for it. Return why it is refused, or None."""
        step = self._steps.get(queued)
        if step is None or step.end or not self._rules.iterative:
            return not_rescheduled()
        sequence = step.sequence
        if sequence.ending:
            return self._not_begun(sequence.id)
        sequence.running = None
        self._append(Step(queued, sequence, False, False), now)
        return None

    def instance_added(self, number: int) -> None:
        """Note an instance that can take batches."""
        self._pool.add(number)

    def instance_retired(self, number: int) -> None:
        """Note an instance that is to leave, once it `may_retire`."""
        self._pool.retire(number)

    def instance_lost(self, number: int) -> None:
        """Note that an instance takes no more batches: it has ended, or is about to."""
        slots = self._pool.lose(number)
        if slots is not None:
            for sequence in slots.sequences:
                if sequence is not None:
                    self._lose(sequence, slots)

    def may_retire(self, number: int) -> bool:
        """Return whether nothing that waits or may come has to run on this instance."""
        return self._pool.of(number) is None

    def _not_begun(self, identifier: int | str) -> ServingError:
        return self._requests.not_begun(identifier, self._lost.get(identifier) or "")

    def _begin(self, identifier: int | str) -> Sequence:
        sequence = self._open[identifier] = Sequence(identifier)
        self._lost.remove(identifier)
        self._pool.enter(sequence)
        return sequence

    def _begin_unnamed(self) -> Sequence:
        """Begin the sequence of a request without an id, which no other request can join."""
        sequence = Sequence(self._unnamed.next())
        self._pool.enter(sequence)
        return sequence

    def _append(self, step: Step, now: int) -> None:
        """Add a request to its sequence."""
        sequence, timeout = step.sequence, step.queued.request.timeout_us * _MICROSECOND or self._policy.timeout_ns
        sequence.waiting.append(step)
        self._steps[step.queued] = step
        self._pending += 1
        self._idle.remove(sequence)
        if step.end:
            self._end(sequence)
        if not sequence.instance and timeout:
            self._timeouts.add(sequence, now + timeout)
        self._pool.ready(sequence)

    def _end(self, sequence: Sequence) -> None:
        """Let no further request join a sequence."""
        sequence.ending = True
        if self._open.get(sequence.id) is sequence:
            del self._open[sequence.id]

    def _settle(self, sequence: Sequence, now: int) -> None:
        """Let the next request of a sequence run; without one, free its slot if it ends, else count its idle time."""
        if sequence.waiting or sequence.running is not None:
            self._pool.ready(sequence)
        elif sequence.ending:
            self._idle.remove(sequence)
            self._pool.leave(sequence)
        else:
            self._idle.add(sequence, now)

    def _withdraw(self, step: Step) -> bool:
        """Take a request back that is about to run. Return False if it runs."""
        slots = self._pool.of(step.sequence.instance)
        if slots is None or not slots.remove(step.queued):
            return False
        step.sequence.running = None
        return True

    def _lose(self, sequence: Sequence, slots: SlotsOfInstance) -> None:
        """End a sequence whose instance has ended."""
        why = self._requests.lost(sequence.id)
        error = unavailable(f"{why}; start it again", FailureReason.BACKEND)
        if self._open.get(sequence.id) is sequence:
            self._lost.put(sequence.id, why)
        running = sequence.running
        if running is not None and slots.remove(running.queued):
            sequence.running = None
            self._refuse(running, error)
        self._refuse_waiting(sequence, error)
        self._end(sequence)
        self._idle.remove(sequence)

    def _cancel_from(self, sequence: Sequence, at: int) -> None:
        """End a sequence, and cancel its waiting requests from position `at` on."""
        self._end(sequence)
        while len(sequence.waiting) > at:
            step = sequence.waiting[at]
            del sequence.waiting[at]
            self._refuse(step, cancellation(step.queued.request))

    def _refuse_waiting(self, sequence: Sequence, error: ServingError) -> None:
        while sequence.waiting:
            self._refuse(sequence.waiting.popleft(), error)

    def _refuse(self, step: Step, error: ServingError) -> None:
        """Refuse a request that waits; it is pending until the next decision."""
        self._steps.pop(step.queued, None)
        self._refused.append(Refusal(step.queued, error))

    def _dispatch(self, slots: SlotsOfInstance, now: int, decision: Decision) -> None:
        steps = slots.next_batch(now)
        requests = [step.queued for step in steps if step is not None]
        if not requests:
            decision.wake_at = _earliest(decision.wake_at, slots.wake_at)
            return
        self._pending -= len(requests)
        decision.batches.append(Batch(slots.number, requests, self._slots(steps)))
        if not self._rules.oldest:
            for step in steps:
                # The backlog's next sequence is in the next batch.
                if step is not None and step.end and not step.sequence.waiting:
                    self._pool.leave(step.sequence)

    def _slots(self, steps: list[Step | None]) -> Slots:
        """Return a batch as the instance gets it."""
        messages: list[InferRequest] = []
        requests: list[QueuedRequest | None] = []
        first: Step | None = None
        for step in steps:
            first = first or step
        assert first is not None
        for step in steps:
            if step is None:
                states = self._states.inputs(first.sequence, first.start)
                messages.append(self._controls.null(first.queued.request, states))
                requests.append(None)
            else:
                states = self._states.inputs(step.sequence, step.start)
                messages.append(self._controls.message(step, states))
                requests.append(step.queued)
        return Slots(messages, requests)


def _policy(config: ModelConfig) -> QueuePolicy:
    """Return the limits of the queue; none without the parameter."""
    declared = queue_policies(config)
    return QueuePolicy() if declared is None else QueuePolicy.of(declared.default_queue_policy)


def _earliest(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
