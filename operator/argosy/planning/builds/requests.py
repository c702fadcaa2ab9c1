"""Build requests: one for each version of a model and each architecture that it runs on."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from argosy.api.engine.accuracy import Accuracy
from argosy.api.engine.engine import Engine
from argosy.api.inferencemodel import InferenceModel
from argosy.api.servingpool import ServingPool
from argosy.api.values.tensors import Tensor
from argosy.planning.builds.images import BuildImages
from argosy.planning.demand.model_files import file_name
from argosy_agent.contract.builds import BuildRequest, DataSource, Gate, TensorSpec
from argosy_agent.contract.engine_options.checks import build_options


def requests(
    model: InferenceModel, pool: ServingPool, architecture: str, images: BuildImages
) -> Mapping[int, BuildRequest]:
    """Return the build requests of a model with an engine, by version; empty if the pool has no engine cache.

    `images`: one of them builds it if the model names none. Another image builds another engine.
    """
    engine, cache = model.spec.engine, pool.spec.storage.engine_cache
    if engine is None or cache is None:
        return {}
    image = engine.image or images.of(engine.builder, architecture)
    common = _common(model, engine, cache.storage_uri, architecture, image)
    return {version: _of_version(model, version, common) for version in model.spec.declared_versions}


def _common(model: InferenceModel, engine: Engine, store: str, architecture: str, image: str) -> BuildRequest:
    spec, secret = model.spec, model.spec.storage.secret_name or ""
    calibration = engine.calibration
    return BuildRequest(
        builder=engine.builder.value,
        architecture=architecture,
        compiler=image,
        store=store,
        model=DataSource(),
        precision=engine.precision.value if engine.precision else "",
        options=build_options(engine.builder.value, engine.options),
        inputs=tuple(map(_tensor, spec.inputs)),
        outputs=tuple(map(_tensor, spec.outputs)),
        max_batch_size=spec.max_batch_size or 0,
        batch_sizes=tuple(spec.batching.preferred_batch_sizes) if spec.batching else (),
        tensor=spec.parallelism.tensor,
        pipeline=spec.parallelism.pipeline,
        calibration=DataSource(calibration.data_uri, secret=secret) if calibration else DataSource(),
        calibration_samples=(calibration.samples or 0) if calibration else 0,
        gate=next(_gates(engine.accuracy, secret), None),
        skip=(engine.accuracy.skip or "") if engine.accuracy else "",
    )


def _of_version(model: InferenceModel, version: int, common: BuildRequest) -> BuildRequest:
    files = model.spec.declared[version]
    name = str(model.spec.config.get("default_model_filename") or "")
    return replace(
        common,
        model=DataSource(files.storage_uri, files.digest or "", model.spec.storage.secret_name or ""),
        filename=file_name(files.storage_uri, model.spec.model_format.backend, name),
    )


def _tensor(tensor: Tensor) -> TensorSpec:
    """Return the tensor with the shape that the files have: requests may bring another one (`reshape`)."""
    dims = tensor.reshape.shape if tensor.reshape is not None else tensor.dims
    return TensorSpec(tensor.name, tensor.data_type.value, tuple(dims))


def _gates(accuracy: Accuracy | None, secret: str) -> Iterator[Gate]:
    if accuracy is None or accuracy.data_uri is None:
        return
    yield Gate(
        data=DataSource(accuracy.data_uri, secret=secret),
        metric="" if accuracy.script else accuracy.compared_by.value,
        script=DataSource(accuracy.script, secret=secret) if accuracy.script else DataSource(),
        minimum=accuracy.min,
        maximum=accuracy.max,
        baseline_precision=accuracy.baseline_precision.value,
        samples=accuracy.samples or 0,
    )
