"""What a search has proven of a plan: as lines for people, and as plain values."""

from collections.abc import Iterator, Sequence
from typing import Any

from argosy.planning.amounts import quantity
from argosy.planning.explanation.proof.prove import Proof


def proof_lines(proofs: Sequence[Proof]) -> Iterator[str]:
    """Yield a line for each pool."""
    for proof in proofs:
        yield f"Proof for pool {proof.pool}: {'; '.join(_clauses(proof))}."


def _clauses(proof: Proof) -> Iterator[str]:
    if proof.note:
        yield f"nothing was searched, since {proof.note}"
    if proof.placed:
        yield f"{quantity(proof.placed, 'replica')} more have a place by the search"
    if proof.gpus < proof.before:
        yield f"{proof.gpus} GPUs suffice in place of {proof.before}"
    if proof.is_optimal:
        yield f"no plan takes fewer than {quantity(proof.gpus, 'GPU')}"
    else:
        yield f"no plan takes fewer than {quantity(proof.bound, 'GPU')}, and this one takes {proof.gpus}"
    if not proof.note:
        yield "no further replica has a place" if proof.complete else "whether further replicas have a place is open"


def proofs_document(proofs: Sequence[Proof]) -> list[dict[str, Any]]:
    """Return what is proven of each pool as plain values."""
    return [
        {
            "pool": str(proof.pool),
            "gpus": proof.gpus,
            "gpusBefore": proof.before,
            "lowerBound": proof.bound,
            "gap": max(0, proof.gpus - proof.bound),
            "optimal": proof.is_optimal,
            "replicasPlaced": proof.placed,
            "complete": proof.complete,
            **({"note": proof.note} if proof.note else {}),
        }
        for proof in proofs
    ]
