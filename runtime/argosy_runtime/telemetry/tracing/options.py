"""How the server traces from its start: the flags `--trace-config` and those that it replaced."""

from dataclasses import dataclass
from enum import StrEnum

from argosy_runtime.traces import TraceLevel

DEFAULT_RATE = 1000


class TraceMode(StrEnum):
    """Where traces go: into files of Triton's form, or to an OpenTelemetry receiver."""

    TRITON = "triton"
    OPENTELEMETRY = "opentelemetry"


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """One request in `rate` is traced, `count` of them (-1 for all).

    In mode triton, traces go to `file`; after each `log_frequency` of them (0 for never) a file of its own, numbered
    from 0, is complete. `config` are the other settings of the mode, in the order of the flags: of opentelemetry `url`,
    `resource` (KEY=VALUE, any number) and `bsp_*`.
    """

    level: TraceLevel = TraceLevel.OFF
    rate: int = DEFAULT_RATE
    count: int = -1
    log_frequency: int = 0
    file: str = ""
    mode: TraceMode = TraceMode.TRITON
    config: tuple[tuple[str, str], ...] = ()
