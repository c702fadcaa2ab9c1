"""Trace files of Triton's form. Everything here runs on the writer's thread.

Traces without a limit and without a log frequency go to the trace file as they come; it is a complete JSON array after
each of them. Others are collected until they are a file of their own, `FILE.0`, `FILE.1` …
"""

import logging
from os import SEEK_END
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Final

from argosy_runtime.traces import TraceRecord

from .entries import entries
from .settings import TraceSetting

_log: Final = logging.getLogger("argosy.trace")
# Collected traces beyond this many bytes wait in a temporary file.
_IN_MEMORY: Final = 8 << 20
_COPIED: Final = 1 << 20


class TraceFiles:
    """The files of one server, and the traces that are in none yet."""

    def __init__(self) -> None:
        self._files: dict[str, _TraceFile] = {}
        self._collected: dict[TraceSetting, IO[str]] = {}

    def write(self, record: TraceRecord, setting: TraceSetting, complete: bool) -> None:
        """Write a record. `complete`: those that were collected under its setting, and it, are a file of their own."""
        text = entries(record)
        options = setting.options
        if not complete and options.count < 0 and not options.log_frequency:
            self._file(options.file).append(text)
            return
        spool = self._collected.get(setting)
        if spool is None:
            spool = self._collected[setting] = SpooledTemporaryFile(  # noqa: SIM115  # closed when it is saved
                _IN_MEMORY, "w+", encoding="utf-8"
            )
        elif text and spool.tell():
            spool.write(",")
        spool.write(text)
        if complete:
            self._save(setting, own_file=True)

    def retire(self, setting: TraceSetting) -> None:
        """Write what was collected under a setting that no longer applies."""
        if setting in self._collected:
            self._save(setting, own_file=setting.options.log_frequency != 0)

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            file.close()
        for spool in self._collected.values():
            spool.close()

    def _save(self, setting: TraceSetting, own_file: bool) -> None:
        with self._collected.pop(setting) as spool:
            spool.seek(0)
            file = self._file(setting.options.file)
            if own_file:
                file.write_numbered(spool)
            else:
                file.append(spool.read())

    def _file(self, name: str) -> "_TraceFile":
        file = self._files.get(name)
        if file is None:
            file = self._files[name] = _TraceFile(name)
        return file


class _TraceFile:
    """One trace file, and the numbered ones next to it. It is replaced by the first trace.

    A file that cannot be written is reported once, and again after the next success.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._number = 0
        self._stream: IO[bytes] | None = None
        self._failed = False

    def append(self, text: str) -> None:
        """Add entries to the file, which stays a JSON array. A request that was refused may have none."""
        if not text:
            return
        try:
            if self._stream is None:
                self._stream = Path(self._name).open("wb")  # noqa: SIM115  # closed by `close`
                self._stream.write(b"[" + text.encode() + b"]")
            else:
                self._stream.seek(-1, SEEK_END)
                self._stream.write(b"," + text.encode() + b"]")
            self._stream.flush()
            self._failed = False
        except OSError as error:
            self._report(self._name, error)

    def write_numbered(self, spool: IO[str]) -> None:
        """Write entries to the next numbered file."""
        name = f"{self._name}.{self._number}"
        self._number += 1
        try:
            with Path(name).open("w", encoding="utf-8") as stream:
                stream.write("[")
                while piece := spool.read(_COPIED):
                    stream.write(piece)
                stream.write("]")
            self._failed = False
        except OSError as error:
            self._report(name, error)

    def close(self) -> None:
        """Close the file."""
        if self._stream is not None:
            try:
                self._stream.close()
            except OSError as error:
                self._report(self._name, error)

    def _report(self, name: str, error: OSError) -> None:
        if not self._failed:
            _log.error("cannot write trace file '%s': %s; its traces are lost", name, error.strerror or error)
        self._failed = True
