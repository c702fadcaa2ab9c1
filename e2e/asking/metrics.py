"""What a server's port of metrics says, read from this machine."""

import urllib.request

from prometheus_client.parser import text_string_to_metric_families

TIMEOUT_S = 10.0


def sample(address: str, metric: str, **labels: str) -> float:
    """Return the value of a server's metric with these labels among others; 0.0 where it has none."""
    with urllib.request.urlopen(f"http://{address}:8002/metrics", timeout=TIMEOUT_S) as answer:
        families = text_string_to_metric_families(answer.read().decode())
    # The parser gives every counter's name the end that OpenMetrics asks for.
    names = (metric, f"{metric}_total")
    samples = [sample for family in families for sample in family.samples if sample.name in names]
    return next((sample.value for sample in samples if labels.items() <= sample.labels.items()), 0.0)
