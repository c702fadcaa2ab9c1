"""The records of earlier rollouts. A state keeps a bounded number of them, as a status has all that it keeps."""

from collections.abc import Sequence

from argosy.rollout.state import Ending, Record

MOST_RECORDS, NEWEST = 10, 3
"""Records in all; the newest of them stay, whatever came of them."""


def retained(records: Sequence[Record]) -> tuple[Record, ...]:
    """Return the records to keep, of those that are given with the newest first, in the same order.

    Beyond the newest ones a revision that was promoted stays, since it can be gone back to: pushes in a row that fail
    or are superseded do not push it out. Other records, and earlier ones of the same revision, fill what is left.
    """
    if len(records) <= MOST_RECORDS:
        return tuple(records)
    promoted: dict[str, int] = {}
    for index, record in enumerate(records):
        if record.outcome is Ending.PROMOTED:
            promoted.setdefault(record.revision.name, index)
    order = [*range(NEWEST), *promoted.values(), *range(len(records))]
    staying = set(list(dict.fromkeys(order))[:MOST_RECORDS])
    return tuple(record for index, record in enumerate(records) if index in staying)


def last_word(records: Sequence[Record], names: frozenset[str]) -> Record | None:
    """Return the newest record of revisions with these names that says whether one was good; the newest without any."""
    of_names = [record for record in records if record.revision.name in names]
    decisive = (record for record in of_names if record.outcome not in (Ending.SUPERSEDED, Ending.WITHDRAWN))
    return next(decisive, of_names[0] if of_names else None)
