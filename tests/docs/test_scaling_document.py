"""The pages on bottlenecks and monitoring name the rules, the alerts and the operator's metrics that there are. The
example of the page on scaling has the numbers that the operator's functions decide.
"""

import re
from pathlib import Path

import numpy as np
import pytest
from tests.chart.monitoring.files import ALERTS
from tests.operator.planning.declared import model

from argosy.api import InferenceModel
from argosy.autoscaling.bottlenecks.rules import RULES
from argosy.autoscaling.capacity.options import limits_of, options
from argosy.autoscaling.capacity.service import Service
from argosy.autoscaling.policy import Policy
from argosy.autoscaling.pool.policies import policy_of
from argosy.controller.metrics.metrics import Metrics
from argosy.simulation.autoscalers.own import Own
from argosy.simulation.member import Workload
from argosy.simulation.recorder import BEGINNING
from argosy.simulation.service import ServiceCurve
from argosy.simulation.simulate import simulate
from argosy.simulation.traces import drawn

PAGES = ("explanation/bottlenecks.md", "monitoring.md")
DOCS = Path(__file__).parents[2] / "docs"
TEXT = "\n".join((DOCS / page).read_text() for page in PAGES)
EXAMPLE = (DOCS / "scaling.md").read_text().partition("**An example.**")[2].partition("\n**")[0]


def rows(beginning: str) -> list[list[str]]:
    """Return the cells of the tables' rows whose first cell begins so."""
    return [line.strip("| ").split(" | ") for line in TEXT.splitlines() if re.match(rf"\| `{beginning}", line)]


def test_the_table_of_rules_is_the_codes() -> None:
    kinds = {rule.kind for rule in RULES}
    table = [row for row in rows("[A-Z]") if row[0].strip("`") in kinds]
    assert [row[0].strip("`") for row in table] == [rule.kind for rule in RULES]


def test_the_thresholds_are_the_codes() -> None:
    kinds = {rule.kind for rule in RULES}
    table = [row for row in rows("[A-Z]") if row[0].strip("`") in kinds]
    for row, rule in zip(table, RULES, strict=True):
        for test in rule.tests:
            if test.threshold:
                assert test.measure.written(test.threshold) in row[1], (rule.kind, test.measure.says)


def test_all_alerts_are_reported_and_no_other() -> None:
    listed = [row[0].strip("`") for row in rows("Argosy")]
    assert listed == [alert["alert"] for alert in ALERTS]


def test_what_the_operator_tells_of_scaling_is_reported() -> None:
    metrics = Metrics()
    metrics.collect(list)
    names = {line.split()[2] for line in metrics.text().decode().splitlines() if line.startswith("# TYPE ")}
    ours = {
        name for name in names if re.match("argosy_(scaling_|bottleneck|ensemble_step|rollout_|consolidation_)", name)
    }
    assert {name for row in rows("argosy_") for name in re.findall(r"`(\w+)`", row[0])} == ours


def number(before: str, after: str) -> float:
    """Return the number of the example that stands between two texts."""
    match = re.search(rf"{before}([\d.]+){after}", EXAMPLE)
    assert match is not None, (before, after)
    return float(match.group(1))


def example() -> tuple[Policy, float]:
    """Return the policy of the example, and the seconds of an execution."""
    most = int(number("from 1 to ", " replicas"))
    latency = f"{number('p99: ', 'ms'):.0f}ms"
    declared = model("m", instances=1, minReplicas=1, maxReplicas=most, slo={"latency": {"p99": latency}})
    assert isinstance(declared, InferenceModel)
    return policy_of(declared, BEGINNING), number("executes for ", " ms") / 1000


def test_the_capacity_of_the_example_is_what_a_replica_serves() -> None:
    policy, seconds = example()
    service = Service(seconds, 0.0)
    (option,) = options(service, limits_of(policy.targets, service), policy.targets.busy_high, policy.bounds, 1, 1)
    assert option.rate == pytest.approx(number("a replica serves ", " requests/s within"), abs=0.05)


def levels() -> list[tuple[float, list[str]]]:
    """Return the requests per second of each row of the example's table, and its other cells."""
    table = [line.strip("| ").split(" | ") for line in EXAMPLE.splitlines() if re.match(r"\| \d", line)]
    assert table
    return [(float(row[0].removesuffix(" requests/s")), row[1:]) for row in table]


def test_the_shares_of_the_example_are_those_of_its_capacity() -> None:
    capacity, margin = number("a replica serves ", " requests/s within"), example()[0].targets.margin
    for rate, (share, with_margin, _) in levels():
        assert (share, with_margin) == (f"{rate / capacity:.1f}", f"{margin * rate / capacity:.1f}")


@pytest.mark.parametrize("seed", [1, 2])
def test_the_example_gets_the_replicas_that_the_page_says(seed: int) -> None:
    policy, seconds = example()
    phase_s, startup_s = 60 * int(number("stays for ", " minutes")), number("start within ", " s")
    trace = drawn("example", np.repeat([rate for rate, _ in levels()], phase_s), seed)
    workload = Workload("m", trace, ServiceCurve((seconds,)), budget_s=0.5, startup_s=startup_s)
    (outcome,) = simulate([(workload, lambda: Own(policy))])
    timeline = outcome.timeline
    for index, (_, cells) in enumerate(levels()):
        in_phase = (timeline.at > index * phase_s) & (timeline.at < (index + 1) * phase_s)
        assert timeline.ready[in_phase].tolist()[-1] == int(cells[-1].partition(";")[0])
    assert timeline.desired.max() <= number("up to ", ", because")
