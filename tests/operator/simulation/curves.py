"""Service curves of tests."""

from argosy.simulation.service import ServiceCurve


def affine(base_s: float, row_s: float, max_batch: int, slowdown: tuple[float, ...] = (1.0,)) -> ServiceCurve:
    """Return a curve of `base_s + row_s · rows`."""
    return ServiceCurve(tuple(base_s + row_s * rows for rows in range(1, max_batch + 1)), slowdown)
