"""Resources of namespace `n` as an API server sends them."""

from typing import Any

from tests.operator.planning import declared


def _metadata(name: str, uid: str = "", generation: int = 1) -> dict[str, Any]:
    return {"namespace": "n", "uid": uid or f"uid-{name}", "generation": generation}


def pool(name: str = "p", **spec: Any) -> dict[str, Any]:
    """Return a pool."""
    return declared.body("ServingPool", name, _metadata(name), **spec)


def model(name: str = "m", generation: int = 1, uid: str = "", **spec: Any) -> dict[str, Any]:
    """Return a Python model that maps x to y."""
    tensor = {"dataType": "TYPE_FP32", "dims": [1]}
    defaults = {
        "modelFormat": {"name": "python"},
        "storageUri": "s3://bucket/m",
        "inputs": [{"name": "x", **tensor}],
        "outputs": [{"name": "y", **tensor}],
        "footprint": None,
    }
    if "versions" in spec:
        del defaults["storageUri"]
    return declared.model_body(name, metadata=_metadata(name, uid, generation), **{**defaults, **spec})


def ensemble(name: str, pool_ref: str) -> dict[str, Any]:
    """Return an ensemble of the model `m`."""
    steps = [{"model": "m", "inputs": {"x": "T0"}, "outputs": {"y": "T1"}}]
    return declared.ensemble_body(
        name, "m", metadata=_metadata(name, f"uid-e-{name}"), poolRef={"name": pool_ref}, version=1, steps=steps
    )
