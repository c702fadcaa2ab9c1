"""`argosy rollout`: look at the rollout of a model or an ensemble, and intervene.

Requests are annotations of the resource, each of which names a revision: no command edits a spec behind Git's back.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer

from argosy.api.rolloutstatus import RolloutRecord
from argosy.cli.rollout import requests
from argosy.cli.rollout.description import description, description_document, history, record
from argosy.cli.rollout.location import Location, with_location
from argosy.cli.rollout.member import Member
from argosy.cli.rollout.progress import Progress, progress
from argosy.cli.rollout.requests import Request
from argosy.cli.rollout.targets.target import Target
from argosy.cli.terminal import Output, print_document, refuse

rollout = typer.Typer(
    no_args_is_help=True,
    help="Look at the rollout of a model or an ensemble, and intervene: in a cluster, or under argosy up.",
)
_LOOK, _INTERVENE = "Look", "Intervene"

Name = Annotated[
    str, typer.Argument(help="The model or ensemble; model/NAME or ensemble/NAME where both have the name.")
]
Revision = Annotated[str, typer.Option("--revision", help="The held revision. Default: the one that is declared.")]
ToRevision = Annotated[str, typer.Option("--to-revision", help="The revision to serve. Default: the one before.")]


@rollout.command(rich_help_panel=_LOOK, epilog="Example: argosy rollout status chat --timeout 600")
@with_location
def status(
    name: Name,
    watch: Annotated[
        bool, typer.Option("--watch/--no-watch", "-w", help="Whether to wait until the rollout has ended.")
    ] = True,
    timeout: Annotated[float | None, typer.Option(help="The most seconds to wait. Default: no limit.", min=0)] = None,
    output: Annotated[
        Output, typer.Option("--output", "-o", help="How to write it. json and yaml do not wait.")
    ] = Output.TABLE,
    *,
    location: Location,
) -> None:
    """Wait until what is declared serves, and print each change; with --no-watch, describe the rollout in detail.

    Exit status: 0 when what is declared serves (with --no-watch, json and yaml always); 1 when it was taken back,
    cannot be served, or the time is over.
    """
    if watch and output is Output.TABLE:
        location.run(lambda target: _watch(target, name, timeout))
        return
    member = location.run(lambda target: target.member(name))
    if output is not Output.TABLE:
        print_document(description_document(member), as_json=output is Output.JSON)
        return
    for line in description(member, datetime.now(UTC)):
        typer.echo(line)


@rollout.command("history", rich_help_panel=_LOOK, epilog="Example: argosy rollout history chat")
@with_location
def show_history(
    name: Name,
    revision: Annotated[
        str, typer.Option("--revision", help="One revision's last rollout, in detail. Default: all, in short.")
    ] = "",
    output: Annotated[Output, typer.Option("--output", "-o", help="How to write it.")] = Output.TABLE,
    *,
    location: Location,
) -> None:
    """Print the last ten rollouts with their outcome, the newest first; of one revision with the evidence."""
    member = location.run(lambda target: target.member(name))
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
@with_location
def undo(
    name: Name,
    to_revision: ToRevision = "",
    *,
    location: Location,
) -> None:
    """Take back what is declared: the revision before it serves until the spec changes."""
    _request(
        location,
        name,
        lambda member: requests.undo(member, datetime.now(UTC), to_revision),
    )


@rollout.command(rich_help_panel=_INTERVENE, epilog="Example: argosy rollout pause chat")
@with_location
def pause(name: Name, *, location: Location) -> None:
    """Stop the steps of a rollout and their clocks. A candidate that fails is still taken back."""
    _request(location, name, requests.pause)


@rollout.command(rich_help_panel=_INTERVENE, epilog="Example: argosy rollout resume chat")
@with_location
def resume(name: Name, *, location: Location) -> None:
    """Go on with a paused rollout."""
    _request(location, name, requests.resume)


@rollout.command(rich_help_panel=_INTERVENE, epilog="Example: argosy rollout promote chat")
@with_location
def promote(name: Name, *, location: Location) -> None:
    """Give the candidate all traffic without further proof."""
    _request(
        location,
        name,
        lambda member: requests.promote(member, datetime.now(UTC)),
    )


@rollout.command(rich_help_panel=_INTERVENE, epilog="Example: argosy rollout retry chat")
@with_location
def retry(
    name: Name,
    revision: Revision = "",
    *,
    location: Location,
) -> None:
    """Try the declared revision again, which failed before and is held."""
    _request(
        location,
        name,
        lambda member: requests.retry(member, datetime.now(UTC), revision),
    )


def _request(location: Location, name: str, make: Callable[[Member], Request]) -> None:
    async def work(target: Target) -> None:
        member = await target.member(name)
        request = make(member)
        note = await target.request(member, request)
        typer.echo(f"{member.described}: {request.message}")
        if note:
            typer.echo(note, err=True)

    location.run(work)


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
