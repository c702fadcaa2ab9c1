"""preserve_ordering: responses leave in the order of their requests."""

from collections import deque

from argosy_runtime.messages import Deliver, InferResponse


class Turn:
    """One request's turn in the order: its responses that may not leave yet."""

    __slots__ = ("_order", "deliver", "finished", "queued")

    def __init__(self, order: "ResponseOrder", deliver: Deliver) -> None:
        self._order = order
        self.deliver = deliver
        self.queued: deque[InferResponse] = deque()
        self.finished = False

    def receive(self, response: InferResponse) -> None:
        """Take a response: it leaves now, or when every earlier request has had its final one."""
        self.queued.append(response)
        self.finished = response.final
        self._order.release()


class ResponseOrder:
    """Responses in the order of their requests: each waits until every earlier request has had its final one."""

    __slots__ = ("_releasing", "_turns")

    def __init__(self) -> None:
        self._turns: deque[Turn] = deque()
        self._releasing = False

    def expect(self, deliver: Deliver) -> Deliver:
        """Add the next request, whose responses go to `deliver`. Return the function that takes them."""
        turn = Turn(self, deliver)
        self._turns.append(turn)
        return turn.receive

    def release(self) -> None:
        """Deliver the responses that may leave. A delivery may bring further responses: they follow in the same loop.

        An exception of a delivery is raised once the later ones are done: the first where there are several.
        """
        if self._releasing:
            return
        self._releasing = True
        try:
            failure = self._release()
        finally:
            self._releasing = False
        if failure is not None:
            raise failure

    def _release(self) -> Exception | None:
        failure: Exception | None = None
        while self._turns:
            first = self._turns[0]
            while first.queued:
                try:
                    first.deliver(first.queued.popleft())
                except Exception as error:
                    failure = failure or error
            if not first.finished:
                break
            self._turns.popleft()
        return failure
