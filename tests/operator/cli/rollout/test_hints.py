"""The commands that messages of rollouts name are commands that the command line takes."""

import re
import shlex
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.operator.planning import declared
from typer.main import get_command

from argosy.api import Ensemble, InferenceModel
from argosy.cli.application import application
from argosy.cli.rollout.targets.target import named
from argosy.planning.rollouts.requests import command_argument
from argosy.rollout.machine import advance
from argosy.rollout.state import FailedRevision, Phase, Revision, RolloutInputs, RolloutState

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MEMBERS = [(declared.model("m"), "InferenceModel"), (declared.ensemble("m", "x"), "Ensemble")]
ONE, TWO = Revision("one", 1), Revision("two", 2)


def parsed(words: list[str]) -> tuple[list[str], dict[str, Any]]:
    """Return the names of the commands and the options that the command line reads."""
    command: Any = get_command(application(["rollout"]))
    names, rest = [], words[1:]
    while hasattr(command, "resolve_command"):
        context = command.make_context(command.name, list(rest))
        name, command, rest = command.resolve_command(context, context._protected_args + context.args)
        names.append(name)
    return names, command.make_context(names[-1], list(rest)).params


@pytest.mark.parametrize("namespace", ["default", "team-a"])
@pytest.mark.parametrize(("member", "kind"), MEMBERS)
def test_a_held_revision_is_tried_again_by_the_command_of_its_message(
    member: InferenceModel | Ensemble, kind: str, namespace: str
) -> None:
    metadata = member.metadata.model_copy(update={"namespace": namespace})
    resource = command_argument(member.model_copy(update={"metadata": metadata}))
    held = RolloutState(Phase.HELD, NOW, stable=ONE, failed=(FailedRevision(TWO, "ErrorRate", "", NOW),))
    state, _ = advance(held, None, RolloutInputs(TWO, NOW, resource=resource))
    hint = re.search("`(argosy [^`]*)`", state.message)
    assert hint is not None
    names, options = parsed(shlex.split(hint[1]))
    assert names == ["rollout", "retry"]
    assert named(options["name"]) == ((kind,), "m")
    assert options["revision"] == "two"
    assert options["namespace"] == (None if namespace == "default" else namespace)
