"""What the server has for all versions together, as its flags ask for."""

from dataclasses import dataclass

from argosy_runtime.repository.unsupported import RATE_LIMITER, RESPONSE_CACHE
from argosy_runtime.scheduling.limits.rate_limiter import RateLimiter
from argosy_runtime.scheduling.response_cache.cache import ResponseCache


@dataclass(frozen=True, slots=True)
class Features:
    """The response cache and the rate limiter, None without them; whether latencies are counted as summaries, too."""

    response_cache: ResponseCache | None = None
    summaries: bool = False
    rate_limiter: RateLimiter | None = None

    @property
    def off(self) -> frozenset[str]:
        """The settings of models that need one of them that is not there, as `unsupported` names them."""
        parts = {RESPONSE_CACHE: self.response_cache, RATE_LIMITER: self.rate_limiter}
        return frozenset(setting for setting, part in parts.items() if part is None)
