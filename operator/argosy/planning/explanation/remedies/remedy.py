"""A remedy: a change by which a replica without a place would have one."""

from dataclasses import dataclass
from enum import StrEnum


class RemedyKind(StrEnum):
    """What a remedy changes."""

    SETTING = "Setting"
    MEMORY = "Memory"
    PREEMPTION = "Preemption"
    PRIORITY = "Priority"
    REPLICAS = "Replicas"
    OTHERS = "Others"
    NODE = "Node"


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change, as `free 6 GiB on GPU 0 of node a`, that a plan was made with. `option`: the option of `argosy plan` by
    which it is tried, where there is one.
    """

    kind: RemedyKind
    text: str
    option: str = ""
