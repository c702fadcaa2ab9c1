"""The loop that runs in the client Pod, run here: commands and requests alongside each other, and its end."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from e2e.asking.namespace import Namespace
from e2e.asking.session import Session
from e2e.cluster.waiting import wait_for


class Here:
    """A namespace whose Pod is this machine."""

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = words[words.index("--") + 2 :]
        return subprocess.Popen([sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def session() -> Iterator[Session]:
    with Session(cast(Namespace, Here()), "client") as session:
        yield session


def test_a_command_has_its_input_and_answers_its_output(session: Session) -> None:
    assert session.request(60, command=["cat"], stdin="a\nb") == {"id": 0, "code": 0, "text": "a\nb"}
    assert session.request(60, command=["sh", "-c", "echo no; exit 3"], stdin="")["code"] == 3


def test_an_error_of_a_request_is_the_askers(session: Session) -> None:
    with pytest.raises(AssertionError, match="unknown url type"):
        session.request(60, url="nowhere", body="", headers={}, patience_s=1.0)
    assert session.alive


def test_one_that_waits_does_not_hold_up_others(session: Session, tmp_path: Path) -> None:
    ended = tmp_path / "ended"
    waits = ["sh", "-c", f"until [ -e {ended} ]; do sleep 0.05; done; echo late"]
    answers = list[str]()
    thread = threading.Thread(target=lambda: answers.append(session.request(60, command=waits, stdin="")["text"]))
    thread.start()
    session.request(60, command=["touch", str(ended)], stdin="")
    thread.join()
    assert answers == ["late\n"]


def test_a_session_that_ends_answers_those_that_wait_and_takes_no_more(session: Session) -> None:
    with pytest.raises(AssertionError, match="ended before its answer"):
        session.request(60, command=["sh", "-c", "kill -9 $PPID"], stdin="")
    wait_for("its end", lambda: not session.alive, 60, 0.01)
    with pytest.raises(AssertionError, match="ended before its answer"):
        session.request(60, command=["true"], stdin="")
