"""The baselines as they come. What has no default is as in its documentation's first example, in this model's terms."""

from argosy.simulation.autoscalers.autoscaler import Autoscaling
from argosy.simulation.autoscalers.hpa import Hpa, HpaMetric, HpaSettings
from argosy.simulation.autoscalers.keda import Keda, KedaSettings
from argosy.simulation.autoscalers.kpa import Kpa, KpaSettings

KEDA_CONCURRENCY = 8.0


def baselines(most: int) -> dict[str, Autoscaling]:
    """Return each by its name: HPA at 80 % busy, KEDA at 8 requests a replica, KPA at 100 of which it aims at 70 %."""
    by_concurrency = HpaSettings(HpaMetric.CONCURRENCY, KEDA_CONCURRENCY, external=True, max_replicas=most)
    return {
        "hpa": lambda: Hpa(HpaSettings(max_replicas=most)),
        "keda": lambda: Keda(KedaSettings(by_concurrency)),
        "kpa": lambda: Kpa(KpaSettings(max_replicas=most)),
    }
