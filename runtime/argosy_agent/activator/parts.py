"""What an activator is told in parts, put together. Pure."""

from argosy_agent.contract.activation import Activation, ActivationPart


class Parts:
    """The newest text of each part. `count`: how many there are, by the first one, which is always there."""

    def __init__(self) -> None:
        self.count = 1
        self._parts: dict[int, ActivationPart] = {}

    def take(self, number: int, part: ActivationPart) -> Activation | None:
        """Take the `number`th part, and return all members as of now.

        None where a part is missing, or is one of another number of parts: what was known before stands, for a member
        that is in no part now may be in one that comes.
        """
        self._parts[number] = part
        if number == 0:
            self.count = part.parts
        parts = [self._parts.get(each) for each in range(self.count)]
        whole = [
            each for at, each in enumerate(parts) if each is not None and (each.number, each.parts) == (at, self.count)
        ]
        if len(whole) < self.count:
            return None
        return Activation(tuple(member for each in whole for member in each.members))
