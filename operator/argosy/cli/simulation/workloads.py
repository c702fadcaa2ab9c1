"""The workloads of a simulation, from manifests, traces and service curves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite

from argosy.api import InferenceModel
from argosy.api.model.scaling.scaling import ModelScaling
from argosy.api.model.scaling.slo import Slo
from argosy.autoscaling.decision import Allocation
from argosy.autoscaling.policy import Policy
from argosy.autoscaling.pool.policies import policy_of
from argosy.cli.simulation.curves import Curve
from argosy.simulation.autoscalers.autoscaler import Autoscaling
from argosy.simulation.autoscalers.hpa import Hpa, HpaMetric, HpaSettings
from argosy.simulation.autoscalers.keda import Keda, KedaSettings
from argosy.simulation.autoscalers.kpa import Kpa, KpaSettings
from argosy.simulation.autoscalers.own import Own
from argosy.simulation.member import Workload
from argosy.simulation.recorder import BEGINNING
from argosy.simulation.servers.engine import EngineCurve
from argosy.simulation.traces import Trace

OTHERS = {"hpa": "hpa=0.6", "keda": "keda=4", "kpa": "kpa=4"}
"""The autoscalers to compare with, each with an example of a target."""
_MOST = {"hpa": 1.0}
"""The largest target, where there is one: a busy share is at most 1."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """A model in the simulation. `ignored`: the fields that its manifest sets and that are not simulated."""

    workload: Workload
    policy: Policy
    ignored: tuple[str, ...] = ()

    def autoscaling(self, other: str) -> Autoscaling:
        """Return Argosy's own autoscaler for "argosy", or another by name, with its target after an equals sign."""
        name, _, target = other.partition("=")
        bounds = self.policy.bounds
        most = bounds.max_replicas
        if name == "hpa":
            hpa = HpaSettings(target=float(target or 0.8), min_replicas=max(1, bounds.min_replicas), max_replicas=most)
            return lambda: Hpa(hpa)
        if name == "keda":
            metric = HpaSettings(HpaMetric.CONCURRENCY, float(target or 8), external=True, max_replicas=most)
            keda = KedaSettings(metric, bounds.min_replicas)
            return lambda: Keda(keda)
        if name == "kpa":
            kpa = KpaSettings(float(target or 100), min_replicas=bounds.min_replicas, max_replicas=most)
            return lambda: Kpa(kpa)
        return lambda: Own(self.policy)


def other_error(other: str) -> str | None:
    """Return the error in the name or target of an autoscaler to compare with, or None."""
    name, _, target = other.partition("=")
    if name not in OTHERS:
        return f"--beside {other}: is none of {', '.join(OTHERS)}"
    most = _MOST.get(name, inf)
    try:
        fits = not target or (0 < float(target) <= most and isfinite(float(target)))
    except ValueError:
        fits = False
    bounds = f"above 0 and at most {most:g}" if isfinite(most) else "above 0"
    return None if fits else f"--beside {other}: the target must be a number {bounds}, such as {OTHERS[name]}"


def simulated_models(
    models: Sequence[InferenceModel], traces: Mapping[str, Trace], curves: Mapping[str, Curve], startup_s: float
) -> tuple[list[Simulated], list[str]]:
    """Return the models to simulate, in the order of priority, and every error."""
    problems: list[str] = []
    by_name = {model.metadata.name: model for model in models}
    simulated: list[Simulated] = []
    for name, trace in traces.items():
        chosen = name or (next(iter(by_name)) if len(by_name) == 1 else "")
        model = by_name.get(chosen)
        if model is None:
            problems.append(_no_model(name, sorted(by_name)))
        elif chosen not in curves:
            problems.append(f"--service: has no entry for {chosen}: add how long it takes")
        else:
            result = _simulated(model, trace, curves[chosen], startup_s)
            if isinstance(result, str):
                problems.append(result)
            else:
                simulated.append(result)
    problems += (
        f"--service: has an entry for {name}, which is no InferenceModel here; there are {', '.join(sorted(by_name))}"
        for name in sorted(curves.keys() - by_name.keys())
    )
    return sorted(simulated, key=lambda member: -(by_name[member.workload.name].spec.priority or 0)), problems


def _no_model(name: str, models: Sequence[str]) -> str:
    if not name:
        return f"the trace names no model, and there are {len(models)}: {', '.join(models)}; give it a column model"
    return f"the trace has requests for {name}, which is no InferenceModel here; there are {', '.join(models)}"


def _simulated(model: InferenceModel, trace: Trace, curve: Curve, startup_s: float) -> Simulated | str:
    """Return the model's workload and policy, or why it has none."""
    policy = policy_of(_without_ignored(model), BEGINNING)
    budgets = policy.targets.first_token if isinstance(curve, EngineCurve) else policy.targets.latency
    name = model.metadata.name
    if not budgets:
        field = "timeToFirstToken" if isinstance(curve, EngineCurve) else "latency"
        return f"{model.identity}: spec.slo.{field} is not set: it says when a request is late; set p99"
    budget = budgets.get("p99") or max(budgets.values())
    start = Allocation(policy.bounds.min_replicas, policy.bounds.min_instances)
    gpus = float(model.spec.gpus or 1)
    workload = Workload(name, trace, curve, budget, start, startup_s=startup_s, gpus=gpus)
    return Simulated(workload, policy, _ignored(model, curve))


def _without_ignored(model: InferenceModel) -> InferenceModel:
    """Return the model without what would decide with values that no simulation has: queries, and the time of day."""
    scaling = model.spec.scaling
    if scaling is None:
        return model
    targets = scaling.targets.model_copy(update={"queries": ()})
    scaling = scaling.model_copy(update={"targets": targets, "schedules": ()})
    return model.model_copy(update={"spec": model.spec.model_copy(update={"scaling": scaling})})


def _ignored(model: InferenceModel, curve: Curve) -> tuple[str, ...]:
    """Return the paths of the fields that the manifest sets and that are not simulated."""
    slo, scaling = model.spec.slo or Slo(), model.spec.scaling or ModelScaling()
    generates = isinstance(curve, EngineCurve)
    is_set = {
        "spec.slo.errorRate": slo.error_rate is not None,
        "spec.slo.timeToFirstToken": slo.time_to_first_token is not None and not generates,
        "spec.slo.interTokenLatency": slo.inter_token_latency is not None and not generates,
        "spec.scaling.targets.tokensPerSecond": scaling.targets.tokens_per_second is not None and not generates,
        "spec.scaling.targets.queries": bool(scaling.targets.queries),
        "spec.scaling.holdTimeout": "hold_timeout" in scaling.model_fields_set,
        "spec.scaling.schedules": bool(scaling.schedules),
    }
    return tuple(field for field, ignored in is_set.items() if ignored)
