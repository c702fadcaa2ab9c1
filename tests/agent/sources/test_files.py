"""A file as the desired repository: each text of it comes, whenever it is written."""

import asyncio
from pathlib import Path

from argosy_agent.sources.files import FileSource


async def test_a_text_that_is_written_before_the_next_is_requested_comes(tmp_path: Path) -> None:
    path = tmp_path / "desired"
    path.write_text("first")
    texts = FileSource(path).texts()
    async with asyncio.timeout(30):
        assert await anext(texts) == "first"
        path.write_text("second")
        assert await anext(texts) == "second"
    await texts.aclose()  # type: ignore[attr-defined]  # a generator, as what iterates it has no need to know
