"""The Debian archive that apt on this machine is configured with."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.errors import ClusterUnavailableError

SUITE = "bookworm"
APT = Path("/etc/apt")


@dataclass(frozen=True, slots=True)
class Mirror:
    """A Debian archive that apt is configured with, and the key file that apt checks it by (if it names one)."""

    uri: str
    keyring: str | None


def configured_mirror() -> Mirror:
    """Return the first plain Debian archive that apt uses here; ClusterUnavailableError when there is none."""
    lists = [APT / "sources.list", *sorted((APT / "sources.list.d").glob("*"))]
    for file in lists:
        if file.suffix in (".list", ".sources") and file.exists():
            for mirror in parse_sources(file.read_text(), deb822=file.suffix == ".sources"):
                return mirror
    raise ClusterUnavailableError(f"apt on this machine knows no Debian archive with the suite {SUITE}")


def parse_sources(text: str, *, deb822: bool) -> Iterator[Mirror]:
    """Yield the archives with our suite in an apt sources file, of either format."""
    if deb822:
        for stanza in re.split(r"\n\s*\n", text):
            fields = dict(re.findall(r"^([\w-]+):[ \t]*(.+)$", stanza, re.MULTILINE))
            if SUITE in fields.get("Suites", "").split() and "deb" in fields.get("Types", "").split():
                yield Mirror(fields["URIs"].split()[0], _key_file(fields.get("Signed-By")))
        return
    for options, uri, suite in re.findall(r"^deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)", text, re.MULTILINE):
        if suite == SUITE:
            signed = re.search(r"signed-by=(\S+)", options)
            yield Mirror(uri, _key_file(signed[1] if signed else None))


def _key_file(value: str | None) -> str | None:
    return value if value is not None and value.startswith("/") else None
