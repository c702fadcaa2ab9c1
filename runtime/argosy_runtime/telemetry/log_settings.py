"""The server's log settings: set by its flags, and by clients while it runs (the logging extension)."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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
    _handlers: list[logging.Handler] = field(default_factory=list)

    def install(self, lines: TextIO, problems: TextIO) -> None:
        """Make this the process' log: `log_file` where there is one, or else warnings and errors go to `problems` and
        all other lines to `lines`. Called once. Raises OSError.
        """
        if self.log_file:
            self._add(logging.FileHandler(self.log_file, encoding="utf-8"), lambda level: True)
        else:
            self._add(logging.StreamHandler(lines), lambda level: level < logging.WARNING)
            self._add(logging.StreamHandler(problems), lambda level: level >= logging.WARNING)
        self._apply()

    def _add(self, handler: logging.Handler, takes: Callable[[int], bool]) -> None:
        handler.addFilter(lambda record: takes(record.levelno) and self.lets_through(record.levelno))
        logging.getLogger().addHandler(handler)
        self._handlers.append(handler)

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
        if not self._handlers:
            return
        for handler in self._handlers:
            handler.setFormatter(_FORMATTERS[self.log_format])
        levels = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)
        # With the root's level no lines are formatted that would not be written.
        lowest = next((level for level in levels if self.lets_through(level)), logging.CRITICAL + 1)
        logging.getLogger().setLevel(lowest)
