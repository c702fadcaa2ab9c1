"""An ensemble as a state machine: responses of steps go in, calls of further steps and its own responses come out.

Tensors live in scopes. A step that answers once writes into the scope it was called in. A decoupled step answers any
number of times, and each answer opens a scope of its own below, in which the steps behind it run again; they see the
scopes above. Which step is ready is known by counting: each scope has, by step, how many tensors it still waits for.
The ensemble answers once for each scope at the depth of its deepest output.

A tensor may be left out: an optional input of the ensemble, or an output that a step's model did not return. It then
counts as written. Steps run without it, and refuse that if they require it, and the ensemble's response lacks it. So an
answer of a decoupled step is one without any tensor, too; a bare final flag is none.
"""

from typing import Final

import numpy as np

from argosy_runtime.errors import ServingError, invalid
from argosy_runtime.messages import (
    InferRequest,
    InferResponse,
    RequestTemplate,
    ResponseTemplate,
    Tensor,
)
from argosy_runtime.tensors import Data

from .ensemble_steps import NO_STREAM, EnsembleSteps, Step

LEFT_OUT: Final = Tensor("", "BOOL", np.empty(0, np.bool_))
"""Stands for a tensor that was left out. Compared by identity."""


class Scope:
    """The tensors of one node in the tree of answers, and what is missing, with the scopes above.

    `missing` is by step, `left` counts requested outputs; `to_call` are the steps of this depth that have not been
    called, `open` the open calls.
    """

    __slots__ = ("children", "left", "missing", "open", "parent", "stream", "to_call", "values")

    def __init__(
        self,
        parent: "Scope | None",
        stream: int,
        values: list[Tensor | None],
        missing: list[int],
        left: int,
        steps: int,
    ) -> None:
        self.parent = parent
        self.stream = stream
        self.values = values
        self.missing = missing
        self.left = left
        self.to_call = steps
        self.open = 0
        self.children: list[Scope] = []


class StepCall:
    """A step to run now: its request, and the scope of its answers. `made`: its last answer's tensors, by output."""

    __slots__ = ("made", "request", "scope", "step")

    def __init__(self, step: Step, scope: Scope, request: InferRequest) -> None:
        self.step = step
        self.scope = scope
        self.request = request
        self.made: dict[str, Tensor] = {}


class Progress:
    """The consequences of an event: calls to make, responses to send. The ensemble's last response is final."""

    __slots__ = ("calls", "responses")

    def __init__(self) -> None:
        self.calls: list[StepCall] = []
        self.responses: list[InferResponse] = []


class EnsembleRun:
    """One request through an ensemble."""

    __slots__ = ("_open", "_request", "_requested", "_root", "_sent", "_steps", "done")

    def __init__(self, steps: EnsembleSteps, request: InferRequest) -> None:
        self._steps = steps
        self._request = request
        self._requested = steps.requested_outputs(request.requested_outputs)
        nothing: list[Tensor | None] = [None] * len(steps.slots)
        requested = self._requested
        self._root = Scope(None, NO_STREAM, nothing, steps.needs.copy(), requested.count, requested.at_depth(NO_STREAM))
        self._open = 0
        # The last answer's tensors, by position: a stream's answers repeat some of them.
        self._sent: list[Tensor | None] = [None] * len(self._requested.slots)
        self.done = False

    def start(self) -> Progress:
        """Begin with the request's own inputs. Return the steps that can run."""
        progress = Progress()
        steps, root = self._steps, self._root
        inputs = self._request.inputs
        for name in inputs:
            slot = steps.slots.get(name)
            if slot is not None:
                self._write(root, slot, inputs[name], progress)
        for slot in steps.inputs:
            if root.values[slot] is None:
                self._write(root, slot, LEFT_OUT, progress)
        for step in self._requested.needing_nothing:
            self._call(root, step, progress)
        self._settle(progress)
        return progress

    def receive(self, call: StepCall, response: InferResponse) -> Progress:
        """Take an answer of a step; `response.final` ends its call."""
        progress = Progress()
        if self.done:
            return progress
        if response.error is not None:
            self._fail(progress, response.error)
            return progress
        if response.final:
            self._open -= 1
            call.scope.open -= 1
        if not (response.is_empty and call.step.decoupled):
            self._receive_outputs(call, response.outputs, response.repeated, progress)
        if response.final:
            self._forget(call.scope)
        self._settle(progress)
        return progress

    def _receive_outputs(
        self, call: StepCall, outputs: list[Tensor], repeated: frozenset[str], progress: Progress
    ) -> None:
        """Write an answer's tensors to its scope, and the outputs that it leaves out."""
        step, scope = call.step, call.scope
        if step.decoupled:
            scope = self._below(scope, step)
        count = 0
        for tensor in outputs:
            slot = step.outputs.get(tensor.name)
            if slot is None:
                continue
            count += 1
            current = _unchanged(call, tensor, tensor.name in repeated) if step.decoupled else tensor
            self._write(scope, slot, current, progress)
        if count < len(step.outputs):
            for slot in step.outputs.values():
                self._write(scope, slot, LEFT_OUT, progress)
        if step.decoupled:
            self._forget(scope)

    def _below(self, scope: Scope, step: Step) -> Scope:
        """Return a scope for one answer of a decoupled step; it begins with the tensors above."""
        depth = step.index
        below = Scope(
            scope, depth, scope.values.copy(), scope.missing.copy(), scope.left, self._requested.at_depth(depth)
        )
        scope.children.append(below)
        return below

    def _write(self, scope: Scope, slot: int, tensor: Tensor, progress: Progress) -> None:
        """Write a tensor to a scope and every scope below."""
        if scope.values[slot] is not None:
            return
        scope.values[slot] = tensor
        for step in self._requested.readers[slot]:
            self._one_less(scope, step, progress)
        if self._requested.flags[slot]:
            scope.left -= 1
            if not scope.left and scope.stream == self._requested.stream:
                self._answer(scope, progress)
        for below in scope.children:
            self._write(below, slot, tensor, progress)

    def _one_less(self, scope: Scope, step: Step, progress: Progress) -> None:
        scope.missing[step.index] -= 1
        if not scope.missing[step.index] and step.stream == scope.stream:
            self._call(scope, step, progress)

    def _call(self, scope: Scope, step: Step, progress: Progress) -> None:
        self._open += 1
        scope.open += 1
        scope.to_call -= 1
        request = self._request_from_template(step, scope.values) or self._step_request(step, scope.values)
        request.origin = self._request.origin
        request.queue_trace = self._request.queue_trace
        if self._request.trace is not None:
            request.trace = self._request.trace.child()
        progress.calls.append(StepCall(step, scope, request))

    def _request_from_template(self, step: Step, values: list[Tensor | None]) -> InferRequest | None:
        """Return a step's request made of a template.

        None where a tensor is not encoded yet, or where the ensemble's request has no template and more than
        its tensors.
        """
        own = self._request
        if own.template is None and not _says_no_more(own):
            return None
        raw: list[Data] = []
        key: list[object] = [own.template, step.index]
        for name, slot in step.inputs:
            tensor = values[slot]
            if tensor is None or tensor is LEFT_OUT:
                continue
            data = tensor.raw
            if data is None:
                return None
            raw.append(data)
            key += (name, tensor.datatype, tensor.shape)
        template_key = tuple(key)
        template = self._steps.request_templates.get(template_key)
        if template is None:
            template = RequestTemplate(self._step_request(step, values))
            self._steps.request_templates.put(template_key, template)
        request = template.request(own.id, raw)
        request.join(own.sequence_id, own.sequence_start, own.sequence_end)
        return request

    def _step_request(self, step: Step, values: list[Tensor | None]) -> InferRequest:
        inputs: dict[str, Tensor] = {}
        for name, slot in step.inputs:
            tensor = values[slot]
            if tensor is not None and tensor is not LEFT_OUT:
                inputs[name] = tensor.renamed(name)
        own = self._request
        return InferRequest(
            model_name=step.model,
            inputs=inputs,
            model_version=step.version,
            id=own.id,
            requested_outputs=step.requested,
            parameters=own.parameters,
            sequence_id=own.sequence_id,
            sequence_start=own.sequence_start,
            sequence_end=own.sequence_end,
            priority=own.priority,
            timeout_us=own.timeout_us,
            device_outputs=step.device_outputs,
        )

    def _answer(self, scope: Scope, progress: Progress) -> None:
        tensors: list[Tensor] = []
        for slot in self._requested.slots:
            tensor = scope.values[slot]
            assert tensor is not None
            tensors.append(tensor)
        response = self._response_from_template(tensors)
        if response is None:
            names = self._requested.names
            response = InferResponse(
                outputs=[tensors[i].renamed(names[i]) for i in range(len(names)) if tensors[i] is not LEFT_OUT]
            )
        if self._requested.stream == NO_STREAM:
            self.done = True
        else:
            response.final = False
            response.repeated = self._repeated(tensors)
        progress.responses.append(response)

    def _response_from_template(self, tensors: list[Tensor]) -> InferResponse | None:
        """Return a response made of a template; None where a tensor is not encoded yet, or was left out."""
        raw: list[Data] = []
        key: list[object] = [self._requested.names]
        for tensor in tensors:
            data = tensor.raw
            if data is None:
                return None
            raw.append(data)
            key += (tensor.datatype, tensor.shape)
        template_key = tuple(key)
        template = self._steps.response_templates.get(template_key)
        if template is None:
            names = self._requested.names
            template = ResponseTemplate([tensors[i].renamed(names[i]).spec() for i in range(len(names))], {})
            self._steps.response_templates.put(template_key, template)
        return template.response(raw)

    def _repeated(self, tensors: list[Tensor]) -> frozenset[str]:
        names = self._requested.names
        again = frozenset([names[i] for i in range(len(names)) if tensors[i] is self._sent[i]])
        for i in range(len(names)):
            self._sent[i] = None if tensors[i] is LEFT_OUT else tensors[i]
        return again

    def _forget(self, scope: Scope) -> None:
        """Remove scopes that get nothing more, so that a long stream does not keep all of its answers."""
        above = scope.parent
        while above is not None and not (scope.open or scope.to_call or scope.children):
            if scope.left and scope.stream == self._requested.stream:
                return
            above.children.remove(scope)
            scope.parent = None
            scope, above = above, above.parent

    def _settle(self, progress: Progress) -> None:
        """Finish the request once no call is open."""
        if self._open or self.done:
            return
        self.done = True
        if progress.responses:
            progress.responses[-1].final = True
        elif self._requested.stream != NO_STREAM:
            progress.responses.append(InferResponse())
        else:
            text = "unexpected deadlock, at least one output is not set while no more ensemble steps can be made"
            self._fail(progress, invalid(self._request.log_prefix + text))

    def _fail(self, progress: Progress, error: ServingError) -> None:
        """End the request with an error, which names the ensemble."""
        self.done = True
        text = f"in ensemble '{self._steps.name}', {error.message}"
        own = ServingError(error.kind, text, error.reason, error.device_error, error.instance_lost)
        progress.responses.append(InferResponse(error=own))


def _unchanged(call: StepCall, tensor: Tensor, repeated: bool) -> Tensor:
    """Return the same object for a tensor that an inner ensemble repeats, and another one for any other.

    So repetitions are recognized by identity.
    """
    before = call.made.get(tensor.name)
    if repeated and before is not None:
        return before
    current = tensor.reshaped(tensor.shape) if tensor is before else tensor
    call.made[tensor.name] = current
    return current


def _says_no_more(request: InferRequest) -> bool:
    """Return whether a request has nothing for its steps' requests but its id and tensors."""
    return not (
        request.parameters
        or request.sequence_id
        or request.sequence_start
        or request.sequence_end
        or request.priority
        or request.timeout_us
    )
