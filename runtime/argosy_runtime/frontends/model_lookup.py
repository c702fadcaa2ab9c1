"""A codec's view of a model, fetched from the data plane when a codec asks for it."""

from collections.abc import Callable

from argosy_runtime.protocol.model_view import ModelView, view_of

from .port import DataPlane


def model_view(plane: DataPlane, name: str, version: str) -> ModelView:
    """Return the view of a model. Raises ServingError where there is none."""
    return view_of(
        plane.model_metadata(name, version),
        plane.model_config(name, version),
        lambda output: plane.labels(name, version, output),
    )


def lazy_view(plane: DataPlane, name: str, version: str) -> Callable[[], ModelView]:
    """Return a function that looks the view up, for codecs that seldom need it."""
    return lambda: model_view(plane, name, version)
