"""Rules of how a new version comes to be served."""

from tests.operator.api.rules.case import Case

ROLLOUT: list[Case] = [
    ({"rollout.strategy": "Beside"}, "spec.rollout.strategy", "none of Auto, Surge, Recreate"),
    (
        {"rollout.steps.1.traffic": "5%"},
        "spec.rollout.steps[1].traffic",
        "more than the step before it has (5%); found 5%",
    ),
    ({"rollout.steps.0.traffic": "101%"}, "spec.rollout.steps[0].traffic", "is more than"),
    ({"rollout.steps.0.traffic": 5}, "spec.rollout.steps[0].traffic", "no percentage"),
    ({"rollout.steps.0.traffic": "0%"}, "spec.rollout.steps[0].traffic", "must be more than 0%"),
    ({"rollout.shadow.traffic": "0.0%"}, "spec.rollout.shadow.traffic", "must be more than 0%"),
    ({"rollout.shadow.traffic": ...}, "spec.rollout.shadow.traffic", "is required"),
    ({"rollout.steps.0.minRequests": 0}, "spec.rollout.steps[0].minRequests", "1 or more"),
    ({"rollout.analysis.errorRate": 1}, "spec.rollout.analysis.errorRate", "no percentage"),
    (
        {"rollout.analysis.latencyRatio": {}},
        "spec.rollout.analysis.latencyRatio",
        "set one or more of p50, p95 and p99",
    ),
    ({"rollout.analysis.latencyRatio.p99": 0}, "spec.rollout.analysis.latencyRatio.p99", "more than 0"),
    ({"rollout.analysis.queries.0.min": ...}, "spec.rollout.analysis.queries[0]", "set min, max or both"),
    ({"rollout.analysis.queries.0.max": 5}, "spec.rollout.analysis.queries[0].max", "is 5, less than min 100"),
    (
        {"rollout.analysis.queries.0.query": "up{a='$(pod)'}"},
        "spec.rollout.analysis.queries[0].query",
        "known: $(namespace)",
    ),
    (
        {"rollout.analysis.queries.1": {"name": "tokens", "query": "up", "min": 1}},
        "spec.rollout.analysis.queries[1].name",
        "already queries[0]",
    ),
]
