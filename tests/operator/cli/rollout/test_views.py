"""What `argosy rollout status` and `history` print."""

from typing import Any

import pytest
from tests.operator.cli.rollout.bodies import NOW, TWO, body, held, promoted, stepping

from argosy.cli.rollout.description import description, history, record
from argosy.cli.rollout.member import Member
from argosy.cli.rollout.progress import Progress, progress
from argosy.rollout.state import Ending, Phase, Record, RolloutState

SHARES = {
    "desiredTraffic": "50%",
    "traffic": "49.8%",
    "steps": 2,
    "strategy": "SurgeInPlace",
    "strategyMessage": "both fit",
}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (
            body(stepping(), shown=SHARES),
            Progress(
                "Stepping 2 of 2, revision bbb2 (version 2), 50% of the requests (measured 49.8%); Verdict: there is "
                "no verdict yet: 100 requests"
            ),
        ),
        (body(promoted(), ready="True"), Progress("Promoted: revision bbb2 (version 2) serves", finished=True)),
        (body(promoted()), Progress("Promoted: revision bbb2 (version 2) serves; version 2 is proven")),
        (
            body(held()),
            Progress("Held: revision bbb2 (version 2) is not tried again: 12 of 300 requests failed", failed=True),
        ),
        (
            body(stepping(phase=Phase.ROLLING_BACK, waiting="Unloaded", message="taken back")),
            Progress("RollingBack, revision bbb2 (version 2); Unloaded: taken back"),
        ),
        (body(None, ready="True", rollout=None), Progress("InferenceModel default/chat is Ready", finished=True)),
        (body(None, rollout=None), Progress("version 2 is proven")),
        (
            body(promoted(), conditions=[{"type": "Stalled", "status": "True", "message": "spec.x is wrong"}]),
            Progress("Stalled: spec.x is wrong", failed=True),
        ),
        (
            body(
                stepping(phase=Phase.LOADING, message="it is not loaded"),
                conditions=[{"type": "Stalled", "status": "True", "message": "no such file"}],
            ),
            Progress(
                "Loading, revision bbb2 (version 2); Verdict: it is not loaded; Stalled: no such file", failed=True
            ),
        ),
        (
            body(
                promoted(message="revision bbb2 serves; the annotation argosy.dev/undo is not followed: no such one"),
                ready="True",
                annotations={"argosy.dev/undo": "bbb2@ddd4"},
            ),
            Progress(
                "Promoted: revision bbb2 serves; the annotation argosy.dev/undo is not followed: no such one",
                finished=True,
            ),
        ),
        (
            body(promoted(), ready="True", observedGeneration=1),
            Progress("the change of InferenceModel default/chat has not been seen by Argosy yet"),
        ),
    ],
)
def test_progress(document: dict[str, Any], expected: Progress) -> None:
    assert progress(Member.of(document)) == expected


@pytest.mark.parametrize(
    ("state", "annotations", "pending"),
    [
        (promoted(), {"argosy.dev/undo": "bbb2@1"}, "argosy.dev/undo"),
        (promoted(handled=("undo=bbb2@1",)), {"argosy.dev/undo": "bbb2@1"}, ""),
        (promoted(), {"argosy.dev/undo": "aaa1@1"}, ""),
        (promoted(former=None), {"argosy.dev/undo": "bbb2@1"}, ""),
        (promoted(), {"argosy.dev/promote": "bbb2@1"}, ""),
        (held(), {"argosy.dev/retry": "bbb2@1"}, "argosy.dev/retry"),
        (held(handled=("retry=bbb2@1",)), {"argosy.dev/retry": "bbb2@1"}, ""),
        (held(), {"argosy.dev/undo": "bbb2@1"}, ""),
    ],
)
def test_a_request_that_is_still_to_be_acted_upon_is_waited_for(
    state: RolloutState, annotations: dict[str, str], pending: str
) -> None:
    result = progress(Member.of(body(state, ready="True", annotations=annotations)))
    assert (result.message == f"the annotation {pending} has not been acted upon yet") is bool(pending)
    assert (result.finished or result.failed) is not bool(pending)


def test_a_resource_without_a_status_has_only_been_declared() -> None:
    document = body(None)
    del document["status"]
    assert not progress(Member.of(document)).finished


def test_a_rollout_in_detail() -> None:
    assert list(description(Member.of(body(stepping(failed=held().failed), shown=SHARES)), NOW)) == [
        "InferenceModel:  default/chat",
        "Phase:           Stepping, step 2 of 2 for 3m",
        "Stable:          revision aaa1 (version 1)",
        "Candidate:       revision bbb2 (version 2)",
        "Traffic:         50% of the requests (measured 49.8%)",
        "Strategy:        SurgeInPlace: both fit",
        "Waiting:         Verdict",
        "Message:         there is no verdict yet: 100 requests",
        "Analysis:        Inconclusive (Errors): 100 requests",
        "",
        "MEASUREMENT  CANDIDATE  STABLE  LIMIT     SAMPLES  OUTCOME       TEST",
        "errorRate    0          0.0005  <= 0.001  100      Inconclusive  SPRT",
        "",
        "HELD  VERSION  REASON     AGE  MESSAGE",
        "bbb2  2        ErrorRate  60s  12 of 300 requests failed",
    ]


def test_what_is_not_proven_is_described_too() -> None:
    lines = list(description(Member.of(body(None, ready="True", rollout=None)), NOW))
    assert lines[0] == "InferenceModel:  default/chat"
    assert lines[1].split(maxsplit=1)[1] == (
        "nothing is proven, for lack of spec.rollout.steps and shadow; InferenceModel default/chat is Ready"
    )
    assert len(lines) == 2


def test_history() -> None:
    assert list(history(Member.of(body(stepping())).rollout, NOW)) == [
        "REVISION  VERSION  OUTCOME   AGE  MESSAGE",
        "aaa1      1        Promoted  2h   400 requests",
    ]
    assert list(history(None, NOW)) == ["REVISION  VERSION  OUTCOME  AGE  MESSAGE"]


def test_mirrored_requests_with_the_worst_of_them() -> None:
    shadow = {
        "equal": 912,
        "different": 3,
        "skipped": 20,
        "candidateLatency": {"p99": 0.0081},
        "stableLatency": {"p99": 0.007},
        "outputs": [
            {
                "output": "score",
                "different": 3,
                "largestDifference": 0.25,
                "examples": [{"requestId": "r-7", "kind": "Value", "size": 0.25}],
            },
            {"output": "logits", "rows": 915, "agreeingRows": 912},
        ],
    }
    lines = list(description(Member.of(body(stepping(verdict=None), shown={"shadow": shadow})), NOW))
    assert "Shadow:          912 equal, 3 different, 20 skipped, p99 0.0081 s, 0.007 s of the stable revision" in lines
    assert lines[-3:] == [
        "OUTPUT  DIFFERENT  LARGEST DIFFERENCE  ROWS ALIKE  WORST REQUESTS",
        "score   3          0.25                <none>      r-7 (Value 0.25)",
        "logits  0          <none>              912 of 915  <none>",
    ]


def test_an_earlier_rollout_in_detail() -> None:
    rollout = Member.of(
        body(stepping(history=(Record(TWO, Ending.ROLLED_BACK, "it failed", NOW, stepping().verdict),)))
    ).rollout
    assert rollout is not None
    assert list(record(rollout.history[0], NOW)) == [
        "Revision:  bbb2 (version 2)",
        "Outcome:   RolledBack 0s ago",
        "Message:   it failed",
        "Analysis:  Inconclusive (Errors): 100 requests",
        "",
        "MEASUREMENT  CANDIDATE  STABLE  LIMIT     SAMPLES  OUTCOME       TEST",
        "errorRate    0          0.0005  <= 0.001  100      Inconclusive  SPRT",
    ]
