"""Versions whose models say themselves whether they are ready (`is_ready` of a Python model)."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence

from argosy_runtime.repository.records import ModelRecord
from argosy_runtime.repository.serving.served import ServedModel


def checked_models(records: Iterable[ModelRecord]) -> Iterator[ServedModel]:
    """Yield the versions in service that are asked."""
    for record in records:
        for _, served in record.serving():
            if isinstance(served, ServedModel) and served.checks_readiness:
                yield served


async def all_checked(models: Sequence[ServedModel]) -> None:
    """Ask all of them at the same time; each keeps its answer."""
    await asyncio.gather(*[model.check_readiness() for model in models])
