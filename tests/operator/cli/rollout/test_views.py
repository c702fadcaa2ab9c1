"""What `argosy rollout status` and `history` print."""

from dataclasses import replace
from typing import Any

import pytest
from tests.operator.cli.rollout.bodies import NOW, TWO, body, held, promoted, stepping

from argosy.cli.rollout.description import description, description_document, history, record
from argosy.cli.rollout.member import Member
from argosy.cli.rollout.progress import Progress, progress
from argosy.rollout.state import Ending, Phase, Record, RolloutState
from argosy.rollout.verdict import Measurement, Outcome, Verdict

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
        "Phase:           Stepping, step 2 of 2 for 3m of at least 1m",
        "Stable:          revision aaa1 (version 1)",
        "Candidate:       revision bbb2 (version 2)",
        "Traffic:         50% of the requests (measured 49.8%)",
        "Strategy:        SurgeInPlace: both fit",
        "Waiting:         Verdict",
        "Message:         there is no verdict yet: 100 requests",
        "Analysis:        Inconclusive (Errors)",
        "",
        "MEASUREMENT  PASSES   FAILS   CANDIDATE  STABLE  SAMPLES  OUTCOME",
        "errorRate    |---o--+------|  0          0.0005  100      Inconclusive",
        "",
        "LIMIT OF",
        "errorRate  <= 0.001; SPRT",
        "",
        "HELD  VERSION  REASON     AGE  MESSAGE",
        "bbb2  2        ErrorRate  60s  12 of 300 requests failed",
    ]


@pytest.mark.parametrize(("loaded", "note"), [((), ""), ((2,), ", not loaded"), ((1, 2), "")])
def test_a_former_revision_is_loaded_or_not(loaded: tuple[int, ...], note: str) -> None:
    versions = [{"version": version, "availableReplicas": 1} for version in loaded]
    lines = list(description(Member.of(body(promoted(), ready="True", versions=versions)), NOW))
    assert [line for line in lines if line.startswith("Former:")] == [
        f"Former:          revision aaa1 (version 1){note}"
    ]


def test_what_was_taken_back_before_anything_was_measured_has_no_analysis() -> None:
    measurement = Measurement("errorRate", None, "<= 0.001", 0, "SPRT", Outcome.INCONCLUSIVE)
    verdict = Verdict(Outcome.INCONCLUSIVE, "4/bbb2/1", "Errors", "no requests", (measurement,))
    lines = list(description(Member.of(body(held(verdict=verdict))), NOW))
    assert not [line for line in lines if line.startswith(("Analysis:", "MEASUREMENT"))]
    convicted = replace(verdict, outcome=Outcome.FAILED)
    lines = list(description(Member.of(body(held(verdict=convicted))), NOW))
    assert [line for line in lines if line.startswith("Analysis:")]


def test_it_fits_in_80_columns() -> None:
    long = "12 of 300 requests failed, which is more than any version of this model ever failed before " * 3
    measurements = (
        Measurement("errorRate", 0.123456, "acceptable 0.1%, unacceptable 1%", 123456, "a sequential test " * 9, None),
        Measurement("differentAnswers", 1.5e-7, "<= 1%", 5, "", Outcome.INCONCLUSIVE, 0.25, long, 0.5),
        Measurement("a-query-with-a-rather-long-name", 2.0, "fails if result > 1", 1, "query", Outcome.FAILED),
        Measurement("p99", 1.0, "<= 2 times", 9, "", Outcome.FAILED, 1.0, long, 7.25),
    )
    verdict = Verdict(Outcome.INCONCLUSIVE, "4/bbb2/1", "Errors", long, measurements)
    failed = tuple(replace(one, message=long) for one in held().failed)
    state = stepping(verdict=verdict, message=long, failed=failed)
    lines = list(description(Member.of(body(state, shown={**SHARES, "strategyMessage": long})), NOW))
    assert max(map(len, lines)) <= 80
    assert " ".join(long.split()) in " ".join(" ".join(lines).split())
    bars = [
        line[line.index("|") :][:15] for line in lines if line.startswith(("differentAnswers", "p99 ")) and "|" in line
    ]
    assert bars == ["|------+--o---|", "|------+-----o|"]


def test_the_description_as_a_document() -> None:
    document = description_document(Member.of(body(stepping(), shown=SHARES)))
    assert (document["name"], document["finished"], document["failed"]) == ("chat", False, False)
    assert document["rollout"]["desiredTraffic"] == "50%"
    assert document["rollout"]["analysis"]["measurements"][0]["progress"] == pytest.approx(-0.5)
    assert description_document(Member.of(body(None, rollout=None)))["rollout"] is None


def test_what_is_not_proven_is_described_too() -> None:
    lines = list(description(Member.of(body(None, ready="True", rollout=None)), NOW))
    assert lines[0] == "InferenceModel:  default/chat"
    assert " ".join(" ".join(lines[1:]).split()[1:]) == (
        "nothing is proven, for lack of spec.rollout.steps and shadow; InferenceModel default/chat is Ready"
    )


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
    described = " ".join(" ".join(lines).split())
    assert "Shadow: 912 equal, 3 different, 20 skipped, p99 0.0081 s, 0.007 s of the stable revision" in described
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
        "MEASUREMENT  PASSES   FAILS   CANDIDATE  STABLE  SAMPLES  OUTCOME",
        "errorRate    |---o--+------|  0          0.0005  100      Inconclusive",
        "",
        "LIMIT OF",
        "errorRate  <= 0.001; SPRT",
    ]
