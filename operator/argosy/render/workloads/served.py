"""Which versions a server had ready when it was last heard of, as a note on its ConfigMap.

Its Pod may be gone by the next round, and with it all that its agent said: a new one is given back what served.
"""

import json
from collections.abc import Mapping
from dataclasses import replace

from argosy_runtime.agent.contract import RenderedRepository

SERVED_ANNOTATION = "argosy.dev/served"

Served = Mapping[str, tuple[int, ...]]
"""Versions by model or ensemble."""


def served_text(served: Served) -> str:
    """The note, as JSON."""
    return json.dumps({name: sorted(served[name]) for name in sorted(served)})


def parse_served(text: str, asked: RenderedRepository) -> RenderedRepository:
    """Of the repository that a server was asked to have what the note says was ready.

    A text that is no such note, since people edit ConfigMaps, says that nothing was.
    """
    try:
        read = json.loads(text)
        noted = {str(name): frozenset(map(int, versions)) for name, versions in read.items()}
    except (AttributeError, TypeError, ValueError):
        noted = {}
    models = [
        replace(each, versions={v: source for v, source in each.versions.items() if v in noted.get(each.name, ())})
        for each in asked.models
    ]
    return RenderedRepository(asked.server, tuple(each for each in models if each.versions))
