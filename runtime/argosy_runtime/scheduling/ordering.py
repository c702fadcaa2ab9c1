"""preserve_ordering: responses leave in the order in which their requests came."""

from collections import deque

from argosy_runtime.messages import Deliver, InferResponse


class Turn:
    """One request's place in the order: what it was answered so far and may not leave yet."""

    __slots__ = ("_order", "deliver", "finished", "held")

    def __init__(self, order: "ResponseOrder", deliver: Deliver) -> None:
        self._order = order
        self.deliver = deliver
        self.held: deque[InferResponse] = deque()
        self.finished = False

    def receive(self, response: InferResponse) -> None:
        """A response: it leaves now, or when every earlier request has had its final one."""
        self.held.append(response)
        self.finished = response.final
        self._order.release()


class ResponseOrder:
    """Holds back the responses of a request until every earlier request has had its final one."""

    __slots__ = ("_releasing", "_turns")

    def __init__(self) -> None:
        self._turns: deque[Turn] = deque()
        self._releasing = False

    def expect(self, deliver: Deliver) -> Deliver:
        """The next request's responses will go to `deliver`; returns where they are to be given."""
        turn = Turn(self, deliver)
        self._turns.append(turn)
        return turn.receive

    def release(self) -> None:
        """Let out what may leave. Who takes a response may bring in others: they follow in the same loop.

        What a delivery raises is raised once the others behind it have theirs: the first error where there are several.
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
            while first.held:
                try:
                    first.deliver(first.held.popleft())
                except Exception as error:
                    failure = failure or error
            if not first.finished:
                break
            self._turns.popleft()
        return failure
