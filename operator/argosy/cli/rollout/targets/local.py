"""Rollouts under `argosy up`: statuses are read from its state folder, and requests are written into it."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from argosy.cli.rollout.member import Member
from argosy.cli.rollout.requests import Request
from argosy.cli.rollout.targets.target import KINDS, MEMBERS, TargetError, named, only
from argosy.local.annotations import annotate
from argosy.local.state import StateFolder

POLL_S = 0.2
"""Seconds between readings of the status, which `argosy up` writes at most five times a second."""

PATIENCE_S = 5.0
"""Seconds in which `argosy up` reads a request, unless it is busy."""


class LocalTarget:
    """The `argosy up` of a state folder. Implements `Target`."""

    def __init__(self, folder: StateFolder) -> None:
        self._folder = folder

    async def member(self, name: str) -> Member:
        """Return the model or ensemble that the status lists."""
        kinds, bare = named(name)
        members = [body for body in self._resources() if body["kind"] in MEMBERS]
        bodies = [body for body in members if body["kind"] in kinds and body["metadata"]["name"] == bare]
        names = ", ".join(sorted(f"{_word(body['kind'])}/{body['metadata']['name']}" for body in members))
        return only([Member.of(body) for body in bodies], name, f"in {self._folder.root} (there: {names or 'none'})")

    async def changes(self, member: Member) -> AsyncGenerator[Member]:
        """Yield the member whenever its status differs. Raises TargetError once `argosy up` has ended."""
        last: Member | None = None
        while True:
            runs = self._folder.is_locked()
            now = await self.member(f"{_kind(member)}/{member.name}")
            if now != last:
                last = now
                yield now
            if not runs:
                raise TargetError(f"argosy up does not run on {self._folder.root}: nothing changes any more")
            await asyncio.sleep(POLL_S)

    async def request(self, member: Member, request: Request) -> str:
        """Write the annotation where the running `argosy up` looks for it, and wait until it has read it."""
        identity = f"{member.kind} {member.namespace}/{member.name}"
        try:
            annotate(self._folder, identity, request.annotation, request.value)
        except OSError as error:
            raise TargetError(f"{self._folder.root} cannot be written: {error.strerror or error}") from error
        if not self._folder.is_locked():
            return "argosy up does not run here; it takes effect once it is started"
        for _ in range(round(PATIENCE_S / POLL_S)):
            now = await self.member(f"{_kind(member)}/{member.name}")
            if now.annotations.get(request.annotation) == request.value:
                return ""
            await asyncio.sleep(POLL_S)
        return "argosy up has not followed it yet; its own output may say why"

    def _resources(self) -> list[Mapping[str, Any]]:
        status = self._folder.read_status()
        if status is None:
            raise TargetError(
                f"{self._folder.root} holds no status: start `argosy up`, or name its folder with --state"
            )
        return list(status["resources"])


def _kind(member: Member) -> str:
    return _word(member.kind)


def _word(kind: str) -> str:
    return next(word for word, named_kind in KINDS.items() if named_kind == kind)
