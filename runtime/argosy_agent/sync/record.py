"""The record that an agent needs when it starts again in the same Pod, in a file of its folder."""

import logging
from dataclasses import asdict, dataclass
from pathlib import Path

from argosy_agent.contract.fields import DocumentError, Fields
from argosy_agent.jsonfiles import read_json, write_json

LOG = logging.getLogger(__name__)
FILE = "agent.json"


@dataclass(frozen=True, slots=True)
class Record:
    """The record of one Pod (a UID or empty): whether it has settled, and the last valid desired text, if any."""

    pod: str
    settled: bool = False
    desired: str = ""


def read_record(folder: Path, pod: str) -> Record:
    """Return what is recorded of this Pod; of another, or unreadable, it is nothing."""
    value = read_json(folder / FILE)
    if value is None or value.get("pod") != pod:
        return Record(pod)
    fields = Fields(value, FILE)
    try:
        return Record(pod, fields.flag("settled"), fields.text("desired"))
    except DocumentError:
        return Record(pod)


def write_record(folder: Path, record: Record) -> None:
    """Replace it. A disk that is full keeps no agent from its work: it is logged."""
    try:
        write_json(folder / FILE, asdict(record))
    except OSError as error:
        LOG.warning("%s cannot be written, a restarted agent would not know of it: %s", folder / FILE, error)
