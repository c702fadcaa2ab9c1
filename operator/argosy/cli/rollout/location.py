"""The options that each command has: which cluster, or which `argosy up`, the rollout is in."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from argosy.cli.rollout.requests import RequestRefusedError
from argosy.cli.rollout.targets.local import LocalTarget
from argosy.cli.rollout.targets.target import Target, TargetError
from argosy.cli.terminal import refuse, with_options
from argosy.local.state import DEFAULT_STATE, StateFolder

_CLUSTER, _LOCAL = "A cluster", "argosy up on this machine"


@dataclass(frozen=True, slots=True)
class Location:
    """The values of these options."""

    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace",
            "-n",
            help="Its namespace. Default: that of the kubeconfig's context.",
            rich_help_panel=_CLUSTER,
        ),
    ] = None
    kubeconfig: Annotated[
        Path | None,
        typer.Option(help="How to reach the cluster. Default: as kubectl.", exists=True, rich_help_panel=_CLUSTER),
    ] = None
    context: Annotated[str | None, typer.Option(help="The context of the kubeconfig.", rich_help_panel=_CLUSTER)] = None
    state: Annotated[
        Path | None,
        typer.Option(
            help="The state folder of `argosy up`. Default: .argosy if it runs here, or there is no "
            "kubeconfig, and no option names a cluster.",
            rich_help_panel=_LOCAL,
        ),
    ] = None

    def run(self, work: Callable[[Target], Coroutine[Any, Any, Any]]) -> Any:
        """Do something with the cluster or the `argosy up`, and return the result. Exit with a message where it cannot
        be done.
        """

        async def run() -> Any:
            async with self._target() as target:
                return await work(target)

        try:
            return asyncio.run(run())
        except (TargetError, RequestRefusedError) as error:
            refuse([str(error)])
        except KeyboardInterrupt:
            raise typer.Exit(130) from None

    @property
    def _folder(self) -> StateFolder | None:
        """The state folder; None for a cluster. Exit with a message where options contradict each other."""
        if self.state is not None and self._names_cluster:
            refuse(["--state names an argosy up, and the other options a cluster: pass only one of the two"])
        if self.state is not None:
            return StateFolder(self.state)
        here = StateFolder(DEFAULT_STATE)
        return here if not self._names_cluster and here.is_locked() else None

    @property
    def _names_cluster(self) -> bool:
        return any(option is not None for option in (self.namespace, self.kubeconfig, self.context))

    @asynccontextmanager
    async def _target(self) -> AsyncIterator[Target]:
        """Reach the cluster, or the `argosy up`. Raises TargetError."""
        folder = self._folder
        if folder is not None:
            yield LocalTarget(folder)
            return
        try:
            from argosy.cli.rollout.targets.cluster import ClusterTarget
            from argosy.cluster.client.access import CredentialsError, default_namespace
            from argosy.cluster.client.connection import Connection
        except ModuleNotFoundError as missing:
            raise TargetError(f"a cluster is reached by {missing.name}: pip install 'argosy[operator]'") from missing
        async with AsyncExitStack() as stack:
            try:
                namespace = self.namespace or default_namespace(self.kubeconfig, self.context)
                connection = await stack.enter_async_context(Connection.open(self.kubeconfig, self.context))
                target: Target = ClusterTarget(connection, namespace)
            except CredentialsError as error:
                target = self._of_the_last_up(error)
            yield target

    def _of_the_last_up(self, error: Exception) -> Target:
        """Return the `argosy up` that has ended here, where there is no cluster. Raises TargetError."""
        if self._names_cluster:
            raise TargetError(str(error)) from error
        folder = StateFolder(DEFAULT_STATE)
        if not folder.status_file.exists():
            out = f"; no argosy up runs here, in {DEFAULT_STATE}: name its folder by --state"
            raise TargetError(f"{error}{out}") from error
        typer.echo(f"argosy up has ended, and left this status in {DEFAULT_STATE}", err=True)
        return LocalTarget(folder)


with_location = with_options(Location, "location")
"""Returns a command with these options in place of its parameter `location`."""
