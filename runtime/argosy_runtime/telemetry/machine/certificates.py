"""Metrics of the certificates that the server's TLS ports show."""

from collections.abc import Iterable
from dataclasses import dataclass

from argosy_runtime.telemetry.exposition import Family


@dataclass(frozen=True, slots=True)
class CertificateState:
    """What is known of the certificate of a port: http, openai, grpc or metrics. `expires_at`: seconds since 1970."""

    port: str
    expires_at: float
    reloads: int
    failures: int


def certificate_families(states: Iterable[CertificateState]) -> list[Family]:
    """Return the families; without TLS they have no samples."""
    expiry = Family(
        "argosy_tls_certificate_expiry_timestamp_seconds",
        "When the certificate that a port shows expires, in seconds since 1970",
        "gauge",
    )
    reloads = Family("argosy_tls_reloads_total", "Certificates that replaced a port's former one", "counter")
    failures = Family(
        "argosy_tls_reload_failures_total",
        "Changed certificate files that could not be used, so that the former certificate stayed",
        "counter",
    )
    for state in states:
        labels = {"port": state.port}
        expiry.add(labels, state.expires_at)
        reloads.add(labels, state.reloads)
        failures.add(labels, state.failures)
    return [expiry, reloads, failures]
