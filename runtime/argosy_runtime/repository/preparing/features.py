"""What the server has for all versions together, as its flags ask for."""

from dataclasses import dataclass

from argosy_runtime.repository.unsupported import RATE_LIMITER, RESPONSE_CACHE
from argosy_runtime.scheduling.response_cache.cache import ResponseCache


@dataclass(frozen=True, slots=True)
class Features:
    """The response cache, None without one; and whether latencies are counted as summaries, too."""

    response_cache: ResponseCache | None = None
    summaries: bool = False

    @property
    def off(self) -> frozenset[str]:
        """The settings of models that need one of them that is not there, as `unsupported` names them."""
        return frozenset({RATE_LIMITER} if self.response_cache is not None else {RATE_LIMITER, RESPONSE_CACHE})
