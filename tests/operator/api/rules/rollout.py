"""Rules of how a new version comes to be served."""

from tests.operator.api.rules.case import Case

ROLLOUT: list[Case] = [
    (
        {"variants": [{"name": "low", "maxConcurrency": 4}, {"name": "high"}]},
        "spec.rollout.steps",
        "declare a model for each variant, with a rollout of its own",
    ),
    (
        {"variants": [{"name": "low", "maxConcurrency": 4}, {"name": "high"}], "rollout.steps": ...},
        "spec.rollout.shadow",
        "takes all requests once each variant has it",
    ),
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
    (
        {"rollout.analysis.errorRate.acceptable": 1},
        "spec.rollout.analysis.errorRate.acceptable",
        "no percentage",
    ),
    (
        {"rollout.analysis.errorRate.acceptable": "0%"},
        "spec.rollout.analysis.errorRate.acceptable",
        "must be more than 0%",
    ),
    (
        {"rollout.analysis.errorRate": {"acceptable": "1%", "unacceptable": "0.9%"}},
        "spec.rollout.analysis.errorRate.unacceptable",
        "must be more than acceptable (1%); found 0.9%",
    ),
    (
        {"rollout.analysis.dryRun": ["p95"], "rollout.analysis.latency": {"p99": 2}},
        "spec.rollout.analysis.dryRun[0]",
        "p95 is not measured; set latency.p95",
    ),
    (
        {"rollout.analysis.dryRun": ["unanswered", "unanswered"]},
        "spec.rollout.analysis.dryRun[1]",
        "unanswered is already dryRun[0]",
    ),
    ({"rollout.analysis.dryRun": ["failedLoads"]}, "spec.rollout.analysis.dryRun[0]", "none of errorRate"),
    (
        {"rollout.analysis.dryRun": ["differentAnswers"], "rollout.shadow": ...},
        "spec.rollout.analysis.dryRun[0]",
        "set rollout.shadow or leave this out",
    ),
    (
        {"rollout.analysis.dryRun": ["top1Agreement"], "rollout.shadow.tolerances": ...},
        "spec.rollout.analysis.dryRun[0]",
        "set it in shadow.tolerances",
    ),
    ({"rollout.analysis.confidence": "50%"}, "spec.rollout.analysis.confidence", 'must be more than "50%"'),
    ({"rollout.analysis.confidence": "100%"}, "spec.rollout.analysis.confidence", 'less than "100%"'),
    (
        {"rollout.analysis.warmUp": "40m"},
        "spec.rollout.analysis.warmUp",
        "is 40m, and nothing is measured in it; it must be shorter than timeout (30m)",
    ),
    (
        {"rollout.analysis.timeout": "30s"},
        "spec.rollout.analysis.timeout",
        "is 30s, and nothing is measured in the first 30s (warmUp); set a longer timeout",
    ),
    ({"rollout.analysis.onInconclusive": "Wait"}, "spec.rollout.analysis.onInconclusive", "Hold, Rollback, Promote"),
    ({"rollout.steps.0.pause": {}}, "spec.rollout.steps[0].pause", "to wait for a person, set rollout.paused"),
    ({"rollout.steps.0.pause": "1h"}, "spec.rollout.steps[0].pause", "longer than analysis.timeout (30m)"),
    ({"rollout.shadow.duration": "31m"}, "spec.rollout.shadow.duration", "is 31m, longer than analysis.timeout"),
    ({"rollout.shadow.duration": "0s"}, "spec.rollout.shadow.duration", "must be more than 0"),
    (
        {"rollout.analysis.latency": {}},
        "spec.rollout.analysis.latency",
        "set one or more of serviceTime, p50, p95 and p99",
    ),
    ({"rollout.analysis.latency.p99": 0}, "spec.rollout.analysis.latency.p99", "more than 0"),
    (
        {"rollout.analysis.latency": {"serviceTime": 1, "tolerance": "0s"}},
        "spec.rollout.analysis.latency.serviceTime",
        "must be more than 1 where tolerance is 0s, such as 1.1; found 1",
    ),
    (
        {"rollout.analysis.queries.0.successCondition": ...},
        "spec.rollout.analysis.queries[0]",
        "set successCondition, failureCondition or both",
    ),
    (
        {"rollout.analysis.queries.0.successCondition": "result[1] > 5"},
        "spec.rollout.analysis.queries[0].successCondition",
        "'result[1] > 5' is no comparison; write it as result < 0.01",
    ),
    (
        {"rollout.analysis.queries.0.failureCondition": "result > 1e999"},
        "spec.rollout.analysis.queries[0].failureCondition",
        "1e999 is too large a number",
    ),
    ({"rollout.sticky.0.header": ...}, "spec.rollout.sticky[0]", "set header or parameter, and not both"),
    ({"rollout.sticky.0.header": "x user"}, "spec.rollout.sticky[0].header", "is not the name of a header"),
    (
        {"rollout.sticky": [{"header": "x-user"}, {"header": "X-User"}]},
        "spec.rollout.sticky[1]",
        "is already sticky[0]",
    ),
    (
        {"rollout.shadow.tolerances.0.absolute": ...},
        "spec.rollout.shadow.tolerances[0]",
        "set one or more of absolute, relative and top1Agreement",
    ),
    (
        {"rollout.shadow.tolerances.0.output": "vektor"},
        "spec.rollout.shadow.tolerances[0].output",
        "'vektor' is no output; declared: vector",
    ),
    (
        {"outputs.0.dataType": "TYPE_STRING"},
        "spec.rollout.shadow.tolerances[0].output",
        "'vector' has texts, which are compared exactly",
    ),
    (
        {"rollout.shadow.tolerances.1": {"output": "vector", "relative": 0.1}},
        "spec.rollout.shadow.tolerances[1].output",
        "'vector' is already tolerances[0]",
    ),
    (
        {"rollout.analysis.queries.0.query": "up{a='$(pod)'}"},
        "spec.rollout.analysis.queries[0].query",
        "known: $(namespace)",
    ),
    (
        {"rollout.analysis.queries.1": {"name": "tokens", "query": "up", "successCondition": "result == 1"}},
        "spec.rollout.analysis.queries[1].name",
        "already queries[0]",
    ),
]
