"""The flags of tracing: `--trace-config`, and those that it replaced."""

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from argosy_runtime.telemetry.tracing.options import DEFAULT_RATE, TraceMode, TraceOptions
from argosy_runtime.traces import TraceLevel

from .values import integer

_ON: Final = ("true", "on", "min", "max", "timestamps")
_OFF: Final = ("false", "off")
_UINT32: Final = 2**32
_USAGE: Final = "--trace-config option format is '<trace mode>,<setting>=<value>'. Got "
_BATCHES: Final = {"bsp_max_queue_size": 2048, "bsp_schedule_delay": 5000, "bsp_max_export_batch_size": 512}
"""Settings of the batch span processor, with their defaults; OTEL_BSP_… in the environment replaces these."""


@dataclass(frozen=True, slots=True)
class TraceConfig:
    """One `--trace-config`: a setting of a mode, or of both modes where that is None."""

    mode: TraceMode | None
    setting: str
    value: str


def add_trace_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags to a parser."""
    add = parser.add_argument
    usage = "[<mode>,]<setting>=<value>"
    settings = (
        "level, rate, count or mode; triton,file and triton,log-frequency; opentelemetry,url, resource, "
        "bsp_max_queue_size, bsp_schedule_delay and bsp_max_export_batch_size"
    )
    add("--trace-config", action="append", default=[], type=_config, metavar=usage, help=settings)
    add("--trace-level", action="append", default=[], type=_level, help="deprecated: --trace-config level=…")
    add("--trace-rate", type=integer, default=DEFAULT_RATE, help="deprecated: --trace-config rate=…")
    add("--trace-count", type=integer, default=-1, help="deprecated: --trace-config count=…")
    add("--trace-file", default="", metavar="FILE", help="deprecated: --trace-config triton,file=…")
    frequency = "deprecated: --trace-config triton,log-frequency=…"
    add("--trace-log-frequency", type=integer, default=0, help=frequency)


def trace_options(parser: argparse.ArgumentParser, values: argparse.Namespace) -> tuple[TraceOptions, tuple[str, ...]]:
    """Return the options of tracing, and the flags that change nothing. Ends the process where a value is wrong."""
    configs: Sequence[TraceConfig] = values.trace_config
    common = _Reader(parser, {config.setting: config.value for config in configs if config.mode is None}, "")
    mode = common.mode()
    of_mode = [(config.setting, config.value) for config in configs if config.mode is mode]
    own = _Reader(parser, dict(of_mode), f"{mode.value},")
    levels = [*values.trace_level, *[_level(config.value) for config in configs if _is_level(config)]]
    options = TraceOptions(
        level=TraceLevel.OFF if TraceLevel.OFF in levels else TraceLevel(sum(set(levels))),
        rate=common.integer("rate", values.trace_rate) % _UINT32,
        count=common.integer("count", values.trace_count),
        log_frequency=own.integer("log-frequency", values.trace_log_frequency) % _UINT32,
        file=own.text("file", values.trace_file),
        mode=mode,
        config=_config_of(mode, of_mode, own),
    )
    return options, tuple([_flag(config) for config in configs if not _acts(config, mode)])


def writes_files(values: argparse.Namespace) -> bool:
    """Return whether traces are written to files, which is so unless `--trace-config` names another mode."""
    modes = [config.value for config in values.trace_config if config.mode is None and config.setting == "mode"]
    return not modes or modes[-1].lower() == TraceMode.TRITON


class _Reader:
    """The values of one group of settings."""

    def __init__(self, parser: argparse.ArgumentParser, values: Mapping[str, str], prefix: str) -> None:
        self._parser = parser
        self._values = values
        self._prefix = prefix

    def text(self, setting: str, default: str) -> str:
        """Return a value as it is."""
        return self._values.get(setting, default)

    def integer(self, setting: str, default: int) -> int:
        """Return a number."""
        text = self._values.get(setting)
        return default if text is None else self._read(setting, text)

    def natural(self, setting: str, default: int) -> int:
        """Return a number above 0, of the flag, the environment or the default."""
        variable = f"OTEL_{setting.upper()}"
        text = self._values.get(setting) or os.environ.get(variable) or str(default)
        number = self._read(setting, text)
        if number < 1:
            self._parser.error(f'Bad option: "--trace-config {self._prefix}{setting}": {text} is not above 0')
        return number

    def mode(self) -> TraceMode:
        """Return the mode."""
        text = self._values.get("mode", TraceMode.TRITON)
        try:
            return _mode(text)
        except argparse.ArgumentTypeError as error:
            self._parser.error(f'Bad option: "--trace-config mode".\n{error}')

    def _read(self, setting: str, text: str) -> int:
        try:
            return integer(text)
        except argparse.ArgumentTypeError as error:
            self._parser.error(f'Bad option: "--trace-config {self._prefix}{setting}".\n{error}')


def _config_of(mode: TraceMode, configs: Sequence[tuple[str, str]], own: _Reader) -> tuple[tuple[str, str], ...]:
    """Return the settings of a mode that a client sees in addition to those with a field of their own."""
    if mode is TraceMode.TRITON:
        return tuple([(name, value) for name, value in configs if name not in ("file", "log-frequency")])
    others = [(name, value) for name, value in configs if name not in _BATCHES]
    return (*others, *[(name, str(own.natural(name, default))) for name, default in _BATCHES.items()])


def _is_level(config: TraceConfig) -> bool:
    return config.mode is None and config.setting == "level"


_SETTINGS: Final[Mapping[TraceMode | None, tuple[str, ...]]] = {
    None: ("level", "rate", "count", "mode"),
    TraceMode.TRITON: ("file", "log-frequency"),
    TraceMode.OPENTELEMETRY: ("url", "resource", *_BATCHES),
}


def _acts(config: TraceConfig, mode: TraceMode) -> bool:
    return config.mode in (None, mode) and config.setting in _SETTINGS[config.mode]


def _flag(config: TraceConfig) -> str:
    return f"--trace-config={config.mode.value + ',' if config.mode else ''}{config.setting}"


def _config(text: str) -> TraceConfig:
    head, comma, rest = text.partition(",")
    if comma and not head:
        usage = "<trace mode>,<setting>=<value> or <setting>=<value>"
        raise argparse.ArgumentTypeError(
            f"No trace mode specified. --trace-config option format is {usage}. Got {text}"
        )
    mode = _mode(head) if comma else None
    setting, equals, value = (rest if comma else text).partition("=")
    if not (equals and setting and value):
        raise argparse.ArgumentTypeError(_USAGE + text)
    if mode is None and setting == "level":
        _level(value)
    return TraceConfig(mode, setting, value)


def _mode(text: str) -> TraceMode:
    try:
        return TraceMode(text.lower())
    except ValueError:
        modes = 'Available options are "triton" and "opentelemetry"'
        raise argparse.ArgumentTypeError(f"invalid value for trace mode option: {text}. {modes}") from None


def _level(text: str) -> TraceLevel:
    lowered = text.lower()
    if lowered in _OFF:
        return TraceLevel.OFF
    if lowered in _ON:
        return TraceLevel.TIMESTAMPS
    if lowered == "tensors":
        return TraceLevel.TENSORS
    raise argparse.ArgumentTypeError(f"invalid value for trace level option: {text}")
