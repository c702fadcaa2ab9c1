"""Rendered configurations against the rules of a server, so that a resource says what a load would fail of."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic.alias_generators import to_camel
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy.api.documents import Resource
from argosy.api.ensemble import Ensemble
from argosy.api.inferencemodel import InferenceModel
from argosy.api.problems import Problem, field_path
from argosy.api.servingpool import RuntimeName, ServingPool
from argosy.api.values.derived import cached_with_spec
from argosy.planning.validation.graph import NONE_INVALID, Invalid
from argosy.planning.validation.references import check_set
from argosy.planning.variants import RoutedModel, declared_identity, declared_path, expanded
from argosy.render.config.ensemble_config import ensemble_config
from argosy.render.config.model_config import Devices, model_config
from argosy.render.keys import Alike
from argosy_runtime.modelconfig import ConfigError, Violation, check, check_steps, check_structure, normalize

_FIELDS = {
    "input": "inputs",
    "output": "outputs",
    "max_batch_size": "maxBatchSize",
    "dynamic_batching": "batching",
    "sequence_batching": "sequence",
    "version_policy": "versionPolicy",
    "instance_group": "instanceGroups",
    "backend": "modelFormat",
    "platform": "modelFormat",
}
"""Where the fields of a configuration come from, unless `spec.config` gives them."""
_ANY_BATCH = 2**31 - 1
_STEP = re.compile(r"ensemble_scheduling\.step\[(\d+)\](?:\.(input_map|output_map)\[\"(.*)\"\])?")


def check_together(
    resources: Sequence[Resource], sources: Mapping[str, str] | None = None, invalid: Invalid = NONE_INVALID
) -> list[Problem]:
    """Return what is wrong between resources, and what a server would not load of those that are right so far.

    `sources` gives a resource's file by its identity. `invalid` has the identities of those
    that are not among `resources` because of errors of their own.
    """
    problems = check_set(resources, sources, invalid)
    wrong = {problem.resource for problem in problems}
    unloadable = check_rendered(resource for resource in resources if resource.identity not in wrong)
    return [*problems, *(replace(problem, file=(sources or {}).get(problem.resource, "")) for problem in unloadable)]


def check_rendered(resources: Iterable[Resource]) -> list[Problem]:
    """Return what a server would not load of these models and ensembles, each valid by itself. Paths are the
    resource's.
    """
    every = list(expanded(resources))
    models = {resource.key: resource for resource in every if isinstance(resource, InferenceModel)}
    pools = {pool.key: pool.spec.runtime.name for pool in every if isinstance(pool, ServingPool)}
    runtimes = {key: pools.get(model.pool_key, RuntimeName.ARGOSY) for key, model in models.items()}
    problems = [
        Problem("", declared_identity(model), _declared_path(model, _model_path(model, violation)), violation.message)
        for key, model in models.items()
        for violation in _checked(model, runtimes[key]).violations
    ]
    for ensemble in every:
        if isinstance(ensemble, Ensemble) and not isinstance(ensemble, RoutedModel):
            steps = {step.model: models.get(f"{ensemble.namespace}/{step.model}") for step in ensemble.spec.steps}
            models_of_steps = tuple(
                (Alike(model), runtimes[model.key]) for model in steps.values() if model is not None
            )
            problems += [
                Problem("", ensemble.identity, _ensemble_path(ensemble, violation), violation.message)
                for violation in _ensemble_violations(ensemble, models_of_steps)
            ]
    return problems


def _declared_path(model: InferenceModel, path: str) -> str:
    """Return a path of a model's spec as text; of a variant that of its model's spec, as far as the variant sets it."""
    head, *rest = re.split(r"(?=[.\[])", path.removeprefix("spec."), maxsplit=1)
    return field_path(declared_path(model, ("spec", head))) + "".join(rest)


@dataclass(frozen=True, slots=True)
class _Checked:
    config: ModelConfig
    violations: tuple[Violation, ...]


@cached_with_spec
def _checked(model: InferenceModel, runtime: RuntimeName) -> _Checked:
    """Return a model's complete configuration as it is on a CPU of that server, with its violations.

    Tensors that a manifest leaves to the model's files are not checked; of a batch size that it leaves to them only
    what is wrong with every one.
    """
    config = model_config(model, Devices(runtime=runtime), model.spec.declared_versions)
    try:
        full = normalize(config, model.served_name)
    except ConfigError as error:
        return _Checked(config, (Violation("", str(error)),))
    complete = bool(full.input) and bool(full.output)
    rules = check if complete else check_structure
    violations = rules(full)
    if model.spec.batch_size is None:
        batched = ModelConfig()
        batched.CopyFrom(full)
        batched.max_batch_size = _ANY_BATCH
        either_way = {violation.path for violation in rules(batched)}
        violations = [violation for violation in violations if violation.path in either_way]
    return _Checked(full, tuple(violations))


@cached_with_spec
def _ensemble_violations(
    ensemble: Ensemble, steps: tuple[tuple[Alike[InferenceModel], RuntimeName], ...]
) -> tuple[Violation, ...]:
    """Return the violations of an ensemble by itself, and with its steps where all of their tensors are declared."""
    pins = {step.model: step.version or 1 for step in ensemble.spec.steps}
    config = normalize(ensemble_config(ensemble, pins), ensemble.served_name)
    configs = {step.resource.name: _checked(step.resource, runtime).config for step, runtime in steps}
    unknown = {step.resource.name for step, _ in steps if step.resource.spec.batch_size is None}
    complete = {
        name for name, config_of_step in configs.items() if config_of_step.input and config_of_step.output
    } - unknown
    return (*check(config), *(check_steps(config, configs) if complete >= pins.keys() else ()))


def _model_path(model: InferenceModel, violation: Violation) -> str:
    head = re.split(r"[.\[]", violation.path, maxsplit=1)[0]
    if head in model.spec.config or head not in _FIELDS:
        return f"spec.config.{violation.path}" if violation.path else "spec"
    rest = re.sub(r"\w+", lambda word: to_camel(word[0]), violation.path[len(head) :])
    return f"spec.{_FIELDS[head]}{rest}"


def _ensemble_path(ensemble: Ensemble, violation: Violation) -> str:
    if re.split(r"[.\[]", violation.path, maxsplit=1)[0] in ensemble.spec.config:
        return f"spec.config.{violation.path}"
    step = _STEP.match(violation.path)
    if step:
        index, side, name = step.groups()
        return f"spec.steps[{index}]" + (f".{side.removesuffix('_map')}s.{name}" if side else "")
    return "spec." + re.sub(r"^(in|out)put\b", r"\1puts", violation.path)
