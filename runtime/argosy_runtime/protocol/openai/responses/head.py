"""What all parts of one answer have in common."""

from dataclasses import dataclass

import orjson


@dataclass(frozen=True, slots=True)
class AnswerHead:
    """The identity of an answer. `created` in seconds since 1970; `fingerprint` is equal for equal configurations."""

    id: str
    created: int
    model: str
    fingerprint: str
    service_tier: str = ""

    def fields(self, kind: str) -> dict[str, object]:
        """Return the first fields of an answer whose `object` is `kind`."""
        document: dict[str, object] = {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": self.fingerprint,
        }
        if self.service_tier:
            document["service_tier"] = self.service_tier
        return document

    def prefix(self, kind: str) -> bytes:
        """Return an event of the answer up to the value of the first field of its own."""
        return b"data: " + orjson.dumps(self.fields(kind))[:-1] + b","
