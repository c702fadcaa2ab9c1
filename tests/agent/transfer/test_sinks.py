"""A folder and a bucket are the same to a writer."""

import tempfile
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from obstore.store import MemoryStore
from tests.properties import examples

from argosy_agent.transfer.sinks.bucket import BucketSink
from argosy_agent.transfer.sinks.folder import FolderSink
from argosy_agent.transfer.sinks.sink import Sink

FOLDERS = ("", "a/", "a/b/", "c d/", "é/")
NAMES = st.builds(str.__add__, st.sampled_from(FOLDERS), st.sampled_from(["x", "y.json", "%20+", "#1", "z [2]"]))
PREFIXES = st.sampled_from(["a", "a/b", "c d", "é", "none"])
BODIES = st.binary(max_size=50)


class _InMemory(BucketSink):
    """A bucket of this process."""

    def __init__(self, root: str) -> None:
        self._uri, self._root = f"s3://bucket/{root}", root
        self._store = self._parts = MemoryStore()  # type: ignore[assignment]


class Sinks(RuleBasedStateMachine):
    """Does the same to both."""

    @initialize(root=st.sampled_from(["", "deep/engines"]))
    def begin(self, root: str) -> None:
        """Create two empty sinks."""
        self.folder = tempfile.TemporaryDirectory()
        base = Path(self.folder.name)
        self.source = base / "source"
        self.sinks: tuple[Sink, Sink] = (FolderSink(f"file:{base}/sink", base / "sink"), _InMemory(root))

    @rule(name=NAMES, body=BODIES)
    def write(self, name: str, body: bytes) -> None:
        """Write a file and report its progress."""
        self.source.write_bytes(body)
        for sink in self.sinks:
            sent: list[bytes] = []
            sink.write(name, self.source, sent.append)
            assert b"".join(sent) == body

    @rule(name=NAMES, body=BODIES)
    def create(self, name: str, body: bytes) -> None:
        """Create a file where there is none."""
        there = self.sinks[0].read(name) is not None
        assert [sink.create(name, body) for sink in self.sinks] == [not there, not there]

    @rule(name=NAMES, body=BODIES)
    def replace(self, name: str, body: bytes) -> None:
        """Replace a file, or create it."""
        for sink in self.sinks:
            sink.replace(name, body)
            assert sink.read(name) == b"".join(sink.chunks(name)) == body

    @rule(name=NAMES | PREFIXES)
    def remove(self, name: str) -> None:
        """Remove a file, a folder, or nothing."""
        for sink in self.sinks:
            sink.remove(name)
            assert sink.read(name) is None
            assert sink.files(name) == []

    @rule()
    def probe(self) -> None:
        """Check that both keep their contract, and leave nothing of the trial."""
        assert all(sink.is_conditional("a/.probe") for sink in self.sinks)

    @invariant()
    def alike(self) -> None:
        """Check that both contain the same."""
        if not hasattr(self, "sinks"):
            return
        for prefix in ("", "a", "a/b", "none"):
            ones, others = ({file.name: file.size for file in sink.files(prefix)} for sink in self.sinks)
            assert ones == others
            assert self.sinks[0].folders(prefix) == self.sinks[1].folders(prefix)
        for name in ones:
            assert self.sinks[0].read(name) == self.sinks[1].read(name)

    def teardown(self) -> None:
        """Remove the folder."""
        if hasattr(self, "folder"):
            self.folder.cleanup()


TestSinks = Sinks.TestCase
TestSinks.settings = examples(30, stateful_step_count=20)
