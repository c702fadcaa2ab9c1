"""`argosy rollout` with the state folder of an `argosy up`: what it reads, what it writes, and how it ends."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.operator.cli.rollout.bodies import body, held, promoted, stepping
from tests.operator.planning.declared import model
from typer.testing import CliRunner

from argosy.cli.application import application
from argosy.cli.rollout.targets import local
from argosy.local.annotations import AnnotationSource, annotate, annotated, read_annotations
from argosy.local.state import StateFolder
from argosy.rollout.state import Phase, RolloutState

IDENTITY = "InferenceModel default/chat"


@pytest.fixture
def folder(tmp_path: Path) -> StateFolder:
    """Return a state folder with a model in the middle of a rollout."""
    folder = StateFolder(tmp_path / "state")
    folder.create()
    folder.write_status({"resources": [body(stepping())]})
    return folder


@pytest.fixture
def running(folder: StateFolder, monkeypatch: pytest.MonkeyPatch) -> Iterator[StateFolder]:
    """Yield the folder, locked as by a running `argosy up` that reads each request at once."""

    def followed(into: StateFolder, identity: str, annotation: str, value: str | None) -> None:
        annotate(into, identity, annotation, value)
        status = into.read_status()
        assert status is not None
        for document in status["resources"]:
            if f"{document['kind']} default/{document['metadata']['name']}" == identity:
                document["metadata"]["annotations"][annotation] = value
        into.write_status(status)

    monkeypatch.setattr(local, "annotate", followed)
    with folder.locked():
        yield folder


def _rollout(folder: StateFolder, *arguments: str) -> Any:
    return CliRunner().invoke(application(["rollout"]), ["rollout", *arguments, "--state", str(folder.root)])


def test_a_request_stands_in_the_state_folder(running: StateFolder) -> None:
    result = _rollout(running, "pause", "chat")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith(f"{IDENTITY}: paused: ")
    assert read_annotations(running) == {IDENTITY: {"argosy.dev/pause": "true"}}
    assert _rollout(running, "promote", "model/chat").exit_code == 0
    assert read_annotations(running)[IDENTITY].keys() == {"argosy.dev/pause", "argosy.dev/promote"}


def test_a_request_waits_for_an_argosy_up_that_does_not_run(folder: StateFolder) -> None:
    result = _rollout(folder, "undo", "chat")
    assert result.exit_code == 0
    assert result.stderr == "argosy up does not run here; it takes effect once it is started\n"


def test_a_request_that_argosy_up_does_not_follow(folder: StateFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "POLL_S", 0.001)
    monkeypatch.setattr(local, "PATIENCE_S", 0.003)
    with folder.locked():
        result = _rollout(folder, "undo", "chat")
    assert result.exit_code == 0
    assert result.stderr == "argosy up has not followed it yet; its own output may say why\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("pause", "other"), "there is no model or ensemble 'other' in "),
        (("pause", "chta"), "(there: model/chat)"),
        (("pause", "pool/chat"), "'pool' has no rollouts: write model/chat or ensemble/chat"),
        (("retry", "chat"), "has no held revision"),
        (("pause", "chat", "--namespace", "n"), "--state names an argosy up, and the other options a cluster"),
    ],
)
def test_what_cannot_be_is_refused(running: StateFolder, arguments: tuple[str, ...], message: str) -> None:
    result = _rollout(running, *arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    assert read_annotations(running) == {}


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, in which there is no way to a cluster."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    (tmp_path / "config").write_text("apiVersion: v1\nkind: Config\n")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    return tmp_path


def test_what_an_argosy_up_left_is_shown_where_there_is_no_cluster(nowhere: Path) -> None:
    folder = StateFolder(nowhere / ".argosy")
    folder.create()
    folder.write_status({"resources": [body(stepping())]})
    result = CliRunner().invoke(application(["rollout"]), ["rollout", "status", "chat", "--no-watch"])
    assert (result.exit_code, result.stderr) == (0, "argosy up has ended, and left this status in .argosy\n")
    assert result.stdout.startswith("InferenceModel:  default/chat\n")


def test_without_an_argosy_up_and_a_cluster_both_ways_out_are_named(nowhere: Path) -> None:
    result = CliRunner().invoke(application(["rollout"]), ["rollout", "pause", "chat"])
    assert result.exit_code == 1
    assert "no argosy up runs here, in .argosy: name its folder by --state" in result.stderr
    result = CliRunner().invoke(
        application(["rollout"]), ["rollout", "pause", "chat", "--kubeconfig", str(nowhere / "config")]
    )
    assert result.exit_code == 1
    assert "argosy up" not in result.stderr


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (held(), "it is Held: argosy rollout retry tries what is declared again"),
        (promoted(), "it is Promoted: declare a new version"),
        (stepping(phase=Phase.ROLLING_BACK), "it is RollingBack: the candidate is being taken back"),
    ],
)
def test_what_has_no_candidate_is_not_promoted(running: StateFolder, state: RolloutState, message: str) -> None:
    running.write_status({"resources": [body(state)]})
    result = _rollout(running, "promote", "chat")
    assert (result.exit_code, message in result.stderr) == (1, True), result.stderr


def test_at_rest_the_next_rollout_is_paused(running: StateFolder) -> None:
    running.write_status({"resources": [body(promoted())]})
    result = _rollout(running, "pause", "chat")
    assert result.exit_code == 0
    assert "no rollout is under way, it is Promoted; the next one is paused until argosy rollout resume chat" in (
        result.stdout
    )


def test_the_status_as_json_does_not_wait(running: StateFolder) -> None:
    result = _rollout(running, "status", "chat", "-o", "json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["rollout"]["phase"] == "Stepping"


def test_a_name_of_a_model_and_an_ensemble(running: StateFolder) -> None:
    running.write_status({"resources": [body(stepping()), body(stepping(), kind="Ensemble")]})
    assert "write model/chat or ensemble/chat" in _rollout(running, "pause", "chat").stderr
    assert _rollout(running, "pause", "ensemble/chat").exit_code == 0
    assert read_annotations(running).keys() == {"Ensemble default/chat"}


@pytest.mark.parametrize(
    ("document", "code", "last"),
    [
        (body(promoted(), ready="True"), 0, "Promoted: revision bbb2 (version 2) serves"),
        (body(held()), 1, "Held: revision bbb2 (version 2) is not tried again: 12 of 300 requests failed"),
    ],
)
def test_a_rollout_is_watched_until_it_ends(
    running: StateFolder, monkeypatch: pytest.MonkeyPatch, document: dict[str, Any], code: int, last: str
) -> None:
    reading, readings = StateFolder.read_status, iter([False, False, False, True])

    def read(folder: StateFolder) -> Any:
        if next(readings, False):
            folder.write_status({"resources": [document]})
        return reading(folder)

    monkeypatch.setattr(StateFolder, "read_status", read)
    monkeypatch.setattr(local, "POLL_S", 0.001)
    result = _rollout(running, "status", "chat")
    assert result.exit_code == code
    lines = result.stdout.splitlines()
    assert lines[0].startswith("Stepping")
    assert lines[1:] == [last]


def test_a_watch_ends_in_time_or_with_argosy_up(running: StateFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    result = _rollout(running, "status", "chat", "--timeout", "0")
    assert result.exit_code == 1
    assert "the rollout has not ended after 0 s" in result.stderr
    monkeypatch.setattr(StateFolder, "is_locked", lambda _: False)
    result = _rollout(running, "status", "chat")
    assert result.exit_code == 1
    assert "argosy up does not run on" in result.stderr


def test_status_and_history_without_waiting(folder: StateFolder) -> None:
    result = _rollout(folder, "status", "chat", "--no-watch")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0] == "InferenceModel:  default/chat"
    result = _rollout(folder, "history", "chat", "-o", "json")
    assert json.loads(result.stdout)[0]["outcome"] == "Promoted"
    assert "aaa1" in _rollout(folder, "history", "chat").stdout
    assert _rollout(folder, "history", "chat", "--revision", "aaa1").stdout.startswith("Revision:  aaa1 (version 1)")
    assert "has no rollout of 'zzz'; known: aaa1" in _rollout(folder, "history", "chat", "--revision", "zzz").stderr


def test_a_folder_without_a_status(tmp_path: Path) -> None:
    result = _rollout(StateFolder(tmp_path), "status", "chat")
    assert result.exit_code == 1
    assert "holds no status: start `argosy up`" in result.stderr


def test_annotations_of_commands_come_before_those_of_manifests(folder: StateFolder) -> None:
    declared = model("chat", metadata={"annotations": {"argosy.dev/pause": "true", "note": "1"}})
    annotate(folder, declared.identity, "argosy.dev/pause", None)
    annotate(folder, declared.identity, "argosy.dev/undo", "aaa1")
    annotate(folder, "InferenceModel default/other", "argosy.dev/pause", "true")
    other = model("b")
    one, two = annotated([declared, other], read_annotations(folder))
    assert one.metadata.annotations == {"note": "1", "argosy.dev/undo": "aaa1"}
    assert one.spec is declared.spec
    assert two is other


def test_a_file_that_someone_broke_asks_nothing(folder: StateFolder) -> None:
    folder.requests.mkdir()
    folder.annotations_file.write_text("{")
    assert read_annotations(folder) == {}
    folder.annotations_file.write_text(json.dumps({IDENTITY: {"a": 1, "b": "x"}, "y": []}))
    assert read_annotations(folder) == {IDENTITY: {"b": "x"}}


def test_the_file_is_read_when_it_was_replaced(folder: StateFolder) -> None:
    source = AnnotationSource(folder)
    assert not source.refresh()
    for value in ("1", "2"):
        annotate(folder, IDENTITY, "argosy.dev/promote", value)
        assert source.refresh()
        assert source.current == {IDENTITY: {"argosy.dev/promote": value}}
        assert not source.refresh()
    folder.annotations_file.unlink()
    assert source.refresh()
    assert source.current == {}
