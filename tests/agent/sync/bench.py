"""An agent, its fake server, and what its tests do with the two."""

import shutil
from pathlib import Path
from typing import Any

from tests.waiting import until

from argosy_agent.cache.storage import Storage
from argosy_agent.contract import LoadState, RenderedModel, RenderedRepository, VersionSource
from argosy_agent.folder.repository import RepositoryFolder
from argosy_agent.sync.agent import Agent


def text(name: str, *versions: int, note: str = "") -> str:
    """Return a config.pbtxt that serves these versions."""
    listed = ", ".join(map(str, versions))
    return f'name: "{name}"\nversion_policy {{ specific {{ versions: [{listed}] }} }}\n# {note}\n'


class Bench:
    """An agent, its fake server, a clock that is set by hand, and folders of models."""

    def __init__(self, root: Path, fake: Any) -> None:
        self.root, self.fake, self.now = root, fake, 0.0
        (root / "cache").mkdir()
        (root / "pvc").mkdir()
        self.agent = self.new_agent()

    def new_agent(self) -> Agent:
        """Return an agent that knows only what the folder says: as after a kill."""
        folder = RepositoryFolder(self.root / "server", "server.log")
        return Agent(folder, self.storage(), self.fake, lambda: self.now)

    def storage(self) -> Storage:
        """Return a storage that knows the claims below `pvc`."""
        return Storage(self.root / "cache", pvc_root=self.root / "pvc")

    def claimed(self, claim: str, name: str, content: str) -> VersionSource:
        """Write a folder with one file in a claim."""
        folder = self.root / "pvc" / claim / name
        folder.mkdir(parents=True)
        (folder / "weights").write_text(content)
        return VersionSource(f"pvc://{claim}/{name}")

    def source(self, name: str, content: str, broken: bool = False) -> VersionSource:
        """Write a folder with one file."""
        folder = self.root / "sources" / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "weights").write_text(content)
        if broken:
            (folder / "broken").touch()
        return VersionSource(folder.as_uri())

    def model(self, name: str, note: str = "", **versions: VersionSource) -> RenderedModel:
        """Return a rendered model; versions as `v1=…`."""
        numbered = {int(key[1:]): source for key, source in versions.items()}
        return RenderedModel(name, text(name, *numbered, note=note), numbered)

    async def settle(self, *models: RenderedModel) -> None:
        """Run rounds until nothing is under way."""
        desired = RenderedRepository("server", models)
        for _ in range(6):
            await self.agent.observe()
            await self.converge(desired)
            await until(lambda: not self.agent.busy)

    async def converge(self, desired: RenderedRepository) -> None:
        """Start what is missing."""
        await self.agent.aim(desired)
        self.agent.converge()

    def states(self) -> dict[tuple[str, int], LoadState]:
        """Return the states that the agent reports."""
        return {(item.model, item.version): item.state for item in self.agent.ledger.loaded()}

    def entries(self, model: str) -> set[str]:
        """Return the entries of the server's folder of a model."""
        return {path.name for path in (self.root / "server" / "repository" / model).iterdir()}
