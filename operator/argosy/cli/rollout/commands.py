"""`argosy rollout`: look at the rollout of a model or an ensemble, and intervene.

Requests are annotations of the resource, each of which names a revision: no command edits a spec behind Git's back.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from argosy.api.rolloutstatus import RolloutRecord
from argosy.cli.rollout import requests
from argosy.cli.rollout.description import description, history, record
from argosy.cli.rollout.member import Member
from argosy.cli.rollout.progress import Progress, progress
from argosy.cli.rollout.requests import Request, RequestRefusedError
from argosy.cli.rollout.targets.local import LocalTarget
from argosy.cli.rollout.targets.target import Target, TargetError
from argosy.cli.terminal import Output, print_document, refuse
from argosy.local.state import DEFAULT_STATE, StateFolder

rollout = typer.Typer(
    no_args_is_help=True,
    help="Look at the rollout of a model or an ensemble, and intervene: in a cluster, or under argosy up.",
)
_LOOK, _INTERVENE = "Look", "Intervene"
_CLUSTER, _LOCAL = "A cluster", "argosy up on this machine"

Name = Annotated[
    str, typer.Argument(help="The model or ensemble; model/NAME or ensemble/NAME where both have the name.")
]
Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace", "-n", help="Its namespace. Default: that of the kubeconfig's context.", rich_help_panel=_CLUSTER
    ),
]
Kubeconfig = Annotated[
    Path | None,
    typer.Option(help="How to reach the cluster. Default: as kubectl.", exists=True, rich_help_panel=_CLUSTER),
]
Context = Annotated[str | None, typer.Option(help="The context of the kubeconfig.", rich_help_panel=_CLUSTER)]
State = Annotated[
    Path | None,
    typer.Option(
        help="The state folder of `argosy up`. Default: .argosy if it runs here and no option names a cluster.",
        rich_help_panel=_LOCAL,
    ),
]
Revision = Annotated[str, typer.Option("--revision", help="The held revision. Default: the one that is declared.")]
ToRevision = Annotated[str, typer.Option("--to-revision", help="The revision to serve. Default: the one before.")]


@rollout.command(rich_help_panel=_LOOK, epilog="Example: argosy rollout status chat --timeout 600")
def status(
    name: Name,
    watch: Annotated[
        bool, typer.Option("--watch/--no-watch", "-w", help="Whether to wait until the rollout has ended.")
    ] = True,
    timeout: Annotated[float | None, typer.Option(help="The most seconds to wait. Default: no limit.", min=0)] = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    state: State = None,
) -> None:
    """Wait until what is declared serves, and print each change; with --no-watch, describe the rollout in detail.

    Exit status: 0 when what is declared serves (with --no-watch always); 1 when it was taken back, cannot be served, or
    the time is over.
    """
    where = _Where(namespace, kubeconfig, context, state)
    if watch:
        _run(where, lambda target: _watch(target, name, timeout))
        return
    member = _run(where, lambda target: target.member(name))
    for line in description(member, datetime.now(UTC)):
        typer.echo(line)


@rollout.command("history", rich_help_panel=_LOOK, epilog="Example: argosy rollout history chat")
def show_history(
    name: Name,
    revision: Annotated[
        str, typer.Option("--revision", help="One revision's last rollout, in detail. Default: all, in short.")
    ] = "",
    output: Annotated[Output, typer.Option("--output", "-o", help="How to write it.")] = Output.TABLE,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    state: State = None,
) -> None:
    """Print the last ten rollouts with their outcome, the newest first; of one revision with the evidence."""
    member = _run(_Where(namespace, kubeconfig, context, state), lambda target: target.member(name))
    records: Sequence[RolloutRecord] = member.rollout.history if member.rollout is not None else ()
    if revision:
        revisions = [record.revision for record in records]
        if revision not in revisions:
            refuse([f"{member.described} has no rollout of {revision!r}; known: {', '.join(revisions) or 'none'}"])
        records = (records[revisions.index(revision)],)
    if output is Output.TABLE:
        now = datetime.now(UTC)
        for line in record(records[0], now) if revision else history(member.rollout, now):
            typer.echo(line)
        return
    print_document([one.model_dump(mode="json", by_alias=True) for one in records], as_json=output is Output.JSON)


@rollout.command(rich_help_panel=_INTERVENE, epilog="Example: argosy rollout undo chat")
def undo(
    name: Name,
    to_revision: ToRevision = "",
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    state: State = None,
) -> None:
    """Take back what is declared: the revision before it serves until the spec changes."""
    _request(
        _Where(namespace, kubeconfig, context, state),
        name,
        lambda member: requests.undo(member, datetime.now(UTC), to_revision),
    )


@rollout.command(rich_help_panel=_INTERVENE, epilog="Example: argosy rollout pause chat")
def pause(
    name: Name, namespace: Namespace = None, kubeconfig: Kubeconfig = None, context: Context = None, state: State = None
) -> None:
    """Stop the steps of a rollout and their clocks. A candidate that fails is still taken back."""
    _request(_Where(namespace, kubeconfig, context, state), name, requests.pause)


@rollout.command(rich_help_panel=_INTERVENE, epilog="Example: argosy rollout resume chat")
def resume(
    name: Name, namespace: Namespace = None, kubeconfig: Kubeconfig = None, context: Context = None, state: State = None
) -> None:
    """Go on with a paused rollout."""
    _request(_Where(namespace, kubeconfig, context, state), name, requests.resume)


@rollout.command(rich_help_panel=_INTERVENE, epilog="Example: argosy rollout promote chat")
def promote(
    name: Name, namespace: Namespace = None, kubeconfig: Kubeconfig = None, context: Context = None, state: State = None
) -> None:
    """Give the candidate all traffic without further proof."""
    _request(
        _Where(namespace, kubeconfig, context, state),
        name,
        lambda member: requests.promote(member, datetime.now(UTC)),
    )


@rollout.command(rich_help_panel=_INTERVENE, epilog="Example: argosy rollout retry chat")
def retry(
    name: Name,
    revision: Revision = "",
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    state: State = None,
) -> None:
    """Try the declared revision again, which failed before and is held."""
    _request(
        _Where(namespace, kubeconfig, context, state),
        name,
        lambda member: requests.retry(member, datetime.now(UTC), revision),
    )


@dataclass(frozen=True, slots=True)
class _Where:
    """The options that name a cluster or an `argosy up`."""

    namespace: str | None
    kubeconfig: Path | None
    context: str | None
    state: Path | None

    @property
    def folder(self) -> StateFolder | None:
        """The state folder; None for a cluster. Exit with a message where options contradict each other."""
        names_cluster = any(option is not None for option in (self.namespace, self.kubeconfig, self.context))
        if self.state is not None and names_cluster:
            refuse(["--state names an argosy up, and the other options a cluster: pass only one of the two"])
        if self.state is not None:
            return StateFolder(self.state)
        here = StateFolder(DEFAULT_STATE)
        return here if not names_cluster and here.is_locked() else None

    @asynccontextmanager
    async def target(self) -> AsyncIterator[Target]:
        """Reach the cluster, or the `argosy up`. Raises TargetError."""
        folder = self.folder
        if folder is not None:
            yield LocalTarget(folder)
            return
        try:
            from argosy.cli.rollout.targets.cluster import ClusterTarget
            from argosy.cluster.client.access import CredentialsError, default_namespace
            from argosy.cluster.client.connection import Connection
        except ModuleNotFoundError as missing:
            raise TargetError(f"a cluster is reached by {missing.name}: pip install 'argosy[operator]'") from missing
        try:
            namespace = self.namespace or default_namespace(self.kubeconfig, self.context)
            async with Connection.open(self.kubeconfig, self.context) as connection:
                yield ClusterTarget(connection, namespace)
        except CredentialsError as error:
            raise TargetError(str(error)) from error


def _run(where: _Where, work: Callable[[Target], Coroutine[Any, Any, Any]]) -> Any:
    """Do something with a cluster or an `argosy up`, and return the result. Exit with a message where it cannot be."""

    async def run() -> Any:
        async with where.target() as target:
            return await work(target)

    try:
        return asyncio.run(run())
    except (TargetError, RequestRefusedError) as error:
        refuse([str(error)])
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def _request(where: _Where, name: str, make: Callable[[Member], Request]) -> None:
    async def work(target: Target) -> None:
        member = await target.member(name)
        request = make(member)
        note = await target.request(member, request)
        typer.echo(f"{member.described}: {request.message}")
        if note:
            typer.echo(note, err=True)

    _run(where, work)


async def _watch(target: Target, name: str, timeout_s: float | None) -> None:
    """Print each change until the rollout has ended. Exit with 1 if it failed, or the time is over."""
    member = await target.member(name)
    last: Progress | None = None
    try:
        async with asyncio.timeout(timeout_s):
            async for changed in target.changes(member):
                now = progress(changed)
                if now != last:
                    last = now
                    typer.echo(now.message)
                if now.failed:
                    raise typer.Exit(1)
                if now.finished:
                    return
    except TimeoutError:
        refuse([f"{member.described}: the rollout has not ended after {timeout_s:g} s"])
