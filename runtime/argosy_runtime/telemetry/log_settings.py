"""The server's log settings: set by its flags, and by clients while it runs (the logging extension)."""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TextIO

from argosy_runtime.errors import invalid, unsupported

Setting = bool | int | str

DEFAULT_FORMAT = "default"
_LINE = "%(asctime)s %(levelname)s %(name)s: %(message)s"
KINDS: Mapping[str, type] = {
    "log_info": bool,
    "log_warning": bool,
    "log_error": bool,
    "log_verbose_level": int,
    "log_format": str,
}
"""The types of the settings that can be changed; `log_file` cannot."""


def _utc_formatter() -> logging.Formatter:
    formatter = logging.Formatter(_LINE, "%Y-%m-%dT%H:%M:%SZ")
    formatter.converter = time.gmtime
    return formatter


_FORMATTERS: Mapping[str, logging.Formatter] = {DEFAULT_FORMAT: logging.Formatter(_LINE), "ISO8601": _utc_formatter()}
FORMATS = tuple(_FORMATTERS)


@dataclass(slots=True)
class LogSettings:
    """Each level is switched on its own; a verbose level above 0 lets everything of DEBUG through."""

    log_info: bool = True
    log_warning: bool = True
    log_error: bool = True
    log_verbose_level: int = 0
    log_format: str = DEFAULT_FORMAT
    log_file: str = ""
    _handler: logging.Handler | None = None

    def install(self, stream: TextIO) -> None:
        """Make this the process' log: `log_file` where there is one, else `stream`. Called once. Raises OSError."""
        in_file = logging.FileHandler(self.log_file, encoding="utf-8") if self.log_file else None
        self._handler = in_file or logging.StreamHandler(stream)
        self._handler.addFilter(lambda record: self.lets_through(record.levelno))
        logging.getLogger().addHandler(self._handler)
        self._apply()

    def lets_through(self, level: int) -> bool:
        """Return whether a line of this level (logging's numbers) is written."""
        if level >= logging.ERROR:
            return self.log_error
        if level >= logging.WARNING:
            return self.log_warning
        return self.log_info if level >= logging.INFO else self.log_verbose_level > 0

    def values(self) -> dict[str, Setting]:
        """Return every setting, in Triton's order."""
        return {
            "log_file": self.log_file,
            "log_info": self.log_info,
            "log_warning": self.log_warning,
            "log_error": self.log_error,
            "log_verbose_level": self.log_verbose_level,
            "log_format": self.log_format,
        }

    def change(self, changes: Mapping[str, Setting]) -> None:
        """Set new values, of the types in `KINDS`; ignore unknown names. Raises ServingError, and then sets none."""
        if "log_file" in changes:
            raise unsupported("log file location can not be updated through network protocol")
        log_format = changes.get("log_format", self.log_format)
        if log_format not in _FORMATTERS:
            raise invalid(f"invalid argument for log_format, got: {log_format}")
        for name in KINDS.keys() & changes.keys():
            setattr(self, name, changes[name])
        self._apply()

    def _apply(self) -> None:
        if self._handler is None:
            return
        self._handler.setFormatter(_FORMATTERS[self.log_format])
        levels = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)
        # With the root's level no lines are formatted that would not be written.
        lowest = next((level for level in levels if self.lets_through(level)), logging.CRITICAL + 1)
        logging.getLogger().setLevel(lowest)
