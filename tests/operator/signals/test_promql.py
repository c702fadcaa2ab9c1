"""What Prometheus is asked, and what its answers mean."""

from typing import Any

import pytest

from argosy.api.values.identity import PoolKey
from argosy.autoscaling.metrics.names import Counter
from argosy.signals.promql import AnswerError, filled_in, only_value, readings, series_query
from argosy.signals.targets import PoolTargets, Query

POOL = PoolTargets(PoolKey("team/chat"), served_names={"llama": "Llama-3"})


def series(pod: str, values: list[tuple[float, str]], **labels: str) -> dict[str, Any]:
    metric = {"__name__": "nv_inference_request_success", "model": "m", "version": "1", "pod": pod, **labels}
    return {"metric": metric, "values": [list(value) for value in values]}


def test_the_query_names_the_pods_and_escapes_them() -> None:
    query = series_query("team", ["chat-0-a", "chat-1.b"], 35.4)
    assert query.endswith('namespace="team",pod=~"chat\\\\-0\\\\-a|chat\\\\-1\\\\.b"}[36s]')


def test_variables_stand_for_the_members_own() -> None:
    query = Query("llama", "q", 'sum(x{namespace="$(namespace)",pool="$(pool)",model="$(model)"})')
    assert filled_in(query, POOL) == 'sum(x{namespace="team",pool="chat",model="Llama-3"})'


def test_samples_come_together_by_pod_and_time() -> None:
    result = readings([series("a", [(1.0, "3"), (2.5, "4")]), series("b", [(1.2, "7")])])
    assert [(item.at, item.models["m", 1].value(Counter.ANSWERED)) for item in result["a"]] == [
        (1.0, 3.0),
        (2.5, 4.0),
    ]
    assert [item.at for item in result["b"]] == [1.2]


def test_where_two_jobs_scrape_a_pod_nothing_counts_twice() -> None:
    one, other = series("a", [(1.0, "3")], job="pods"), series("a", [(1.0, "3")], job="again")
    assert [item.models["m", 1].value(Counter.ANSWERED) for item in readings([one, other])["a"]] == [3.0]


def test_of_two_ports_of_a_pod_the_one_with_more_is_the_servers() -> None:
    other = {"metric": {"__name__": "x", "pod": "a", "instance": "10.0.0.1:9400"}, "values": [[3.0, "1"]]}
    both = [other, series("a", [(1.0, "3")]), series("a", [(1.0, "3")], version="2")]
    assert [item.at for item in readings(both)["a"]] == [1.0]


@pytest.mark.parametrize(
    "answer",
    [
        [{"metric": {}, "values": []}],
        [{"metric": {"pod": "a"}}],
        ["x"],
        [None],
        [series("a", [(1.0, "x")])],
        [series("a", [])],
        [series("a", [(1.0, "1")]) | {"values": {}}],
        [{"metric": {**series("a", [])["metric"], "version": 1}, "values": [[1.0, "1"]]}],
        [{"metric": {**series("a", [])["metric"], "pod": 1}, "values": [[1.0, "1"]]}],
        [series("a", [(1.0, 10**400)])],  # type: ignore[list-item]
        [series("a", [(10**400, "1")])],
        [series("a", [(float("nan"), "1")])],
    ],
)
def test_an_answer_of_another_shape_is_refused(answer: list[Any]) -> None:
    with pytest.raises(AnswerError):
        readings(answer)


def test_one_value_is_taken_of_a_scalar_and_of_a_vector() -> None:
    assert only_value([1700000000.0, "2.5"]) == 2.5
    assert only_value([{"metric": {}, "value": [1700000000.0, "3"]}]) == 3.0


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ([], "the answer is empty"),
        ([{"value": [1, "1"]}, {"value": [1, "2"]}], "answers 2 values"),
        ([{"value": [1, "NaN"]}], "is nan"),
        ([1, "+Inf"], "is inf"),
        ([{"values": [[1, "1"]]}], "no number"),
        ([1, 10**400], "no number"),
    ],
)
def test_any_other_answer_says_what_it_is(answer: Any, says: str) -> None:
    with pytest.raises(AnswerError, match=says):
        only_value(answer)
