"""Where Argosy answers otherwise than Triton on purpose.

`*.toml` list every deviation: a sentence for users, what Triton does, and the reason. `python -m docs.reference` makes
docs/reference/triton-deviations.md of them. The modules have the whole answers of Argosy to the differential cases
that show one; the recordings stay what Triton said.
"""

from typing import Any

from tests.differential.deviations.case import Deviation
from tests.differential.deviations.protocol import PROTOCOL
from tests.differential.deviations.sequences import SEQUENCES
from tests.differential.deviations.server import SERVER

DEVIATIONS: dict[tuple[str, str], Deviation] = {**SERVER, **PROTOCOL, **SEQUENCES}


def owed(side: str, topic: str, name: str, recorded: Any) -> Any:
    """Return what `side` must answer: Triton its recording, Argosy the same unless it deviates."""
    deviation = DEVIATIONS.get((topic, name)) if side == "argosy" else None
    return deviation.answer if deviation else recorded
