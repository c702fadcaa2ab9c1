"""The decision about a build: whether it runs now, where, and on which GPUs."""

from dataclasses import dataclass

from argosy_agent.contract.builds import BuildRequest


@dataclass(frozen=True, slots=True)
class ScheduledBuild:
    """One build that a model requests, with the decision whether it runs. A build that is no longer requested has none.

    `start`: its Job is to stand now, on `node` with the GPUs of these indexes (in a cluster their number counts). A
    build for a CPU has no GPUs, and no node where any of the pool's of its architecture will do. One that is over does
    not start, and neither does one that `waits`, which says in words for what. `timeout` is how long it may take, in
    milliseconds, `memory` what it requests in bytes, if anything. `owners` are the identities of the models that
    request it.
    """

    request: BuildRequest
    owners: tuple[str, ...]
    timeout: int
    memory: int | None = None
    start: bool = False
    node: str = ""
    gpus: tuple[int, ...] = ()
    waits: str = ""
    is_over: bool = False

    @property
    def name(self) -> str:
        """What names its Job and its report."""
        return self.request.name

    @property
    def image(self) -> str:
        """The image that it runs in."""
        return self.request.compiler
