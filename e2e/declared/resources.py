"""Argosy's resources as the tests declare them."""

from collections.abc import Mapping
from typing import Any

GROUP, VERSION = "argosy.dev", "v1alpha1"
API = f"{GROUP}/{VERSION}"
Body = dict[str, Any]


def pool(name: str, **spec: Any) -> Body:
    """Return a pool of CPU servers that are content with one core."""
    return _body("ServingPool", name, {"runtime": runtime(OMP_NUM_THREADS="1"), **spec})


def runtime(**variables: str) -> Body:
    """Return the bundled runtime, with these variables in its environment."""
    env = [{"name": name, "value": value} for name, value in variables.items()]
    return {"name": "argosy", "podTemplate": {"spec": {"containers": [{"name": "server", "env": env}]}}}


def version_model(
    name: str,
    pool: str,
    storage: str,
    version: int = 1,
    *,
    behavior: Mapping[str, float] | None = None,
    load_s: float = 0.0,
    work_s: float = 0.0,
    **spec: Any,
) -> Body:
    """Return the model of `e2e/models/version`, which answers its version. `storage`: the storage's URL. It takes
    `load_s` to load, and `work_s` to execute; `behavior` has further parameters of it.
    """
    numbers = {"LOAD_S": load_s, "WORK_S": work_s, **(behavior or {})}
    parameters = {name: {"string_value": str(number)} for name, number in numbers.items() if number}
    config = {"parameters": parameters} if parameters else {}
    return _body(
        "InferenceModel",
        name,
        {
            "poolRef": {"name": pool},
            "modelFormat": {"name": "python"},
            "version": version,
            # The same files at another URL: the agent caches by URL, so they are fetched again.
            "storageUri": f"{storage}/slow/0/version.tar?version={version}",
            "inputs": [{"name": "X", "dataType": "TYPE_INT32", "dims": [1]}],
            "outputs": [{"name": "VERSION", "dataType": "TYPE_INT32", "dims": [1]}],
            **({"config": config} if config else {}),
            **spec,
        },
    )


def pair(name: str, pool: str, first: str, second: str, **spec: Any) -> Body:
    """Return an ensemble of two such models: the first's version goes through the second, which answers its own."""
    return _body(
        "Ensemble",
        name,
        {
            "poolRef": {"name": pool},
            "inputs": [{"name": "X", "dataType": "TYPE_INT32", "dims": [1]}],
            "outputs": [
                {"name": "FIRST", "dataType": "TYPE_INT32", "dims": [1]},
                {"name": "SECOND", "dataType": "TYPE_INT32", "dims": [1]},
            ],
            "steps": [
                {"model": first, "inputs": {"X": "X"}, "outputs": {"VERSION": "FIRST"}},
                {"model": second, "inputs": {"X": "FIRST"}, "outputs": {"VERSION": "SECOND"}},
            ],
            **spec,
        },
    )


def language_model(name: str, pool: str, storage_uri: str, **spec: Any) -> Body:
    """Return a language model on vLLM on the CPU, of which four requests at once fit into a batch."""
    parameters = {"dtype": "float32", "max_model_len": "512", "enforce_eager": "true"}
    config = {"parameters": {key: {"string_value": value} for key, value in parameters.items()}}
    return _llm(name, pool, "vllm", storage_uri, maxBatchSize=4, config=config, **spec)


def routed_model(name: str, pool: str, storage_uri: str, *, crossover: int) -> Body:
    """Return a language model of the reference engine in two equal variants, `few` up to `crossover` requests in flight
    and `many` beyond.
    """
    variants = [{"name": "few", "maxConcurrency": crossover}, {"name": "many"}]
    return _llm(name, pool, "huggingface", storage_uri, maxBatchSize=0, variants=variants)


def _llm(name: str, pool: str, model_format: str, storage_uri: str, **spec: Any) -> Body:
    common = {"poolRef": {"name": pool}, "version": 1, "storageUri": storage_uri, "footprint": {"device": "CPU"}}
    return _body("InferenceModel", name, {**common, "modelFormat": {"name": model_format}, **spec})


def _body(kind: str, name: str, spec: Body) -> Body:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}
