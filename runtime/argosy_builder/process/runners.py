"""A builder's runner in a process of its own: an engine that crashes while it answers does not end the build."""

import multiprocessing
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from argosy_agent.contract.builds import BuildFailure, BuildRequest
from argosy_builder import registry
from argosy_builder.contract import Array, BuildError, Runner
from argosy_runtime.failures.out_of_memory import oom_kills

from .causes import explained
from .tools import die_with_parent

ANSWER_S = 1800.0
"""An engine that has not answered one sample, or has not opened, after so long hangs."""
END_S = 5.0
RUN, READ = "run", "log_likelihood"
"""The methods of a runner that are called from the other end; only language models have the second."""


@contextmanager
def isolated(builder: str, folder: Path, request: BuildRequest, name: str) -> Iterator[Runner]:
    """Yield the builder's runner of a folder, in a child process; `name` is for people, as `the baseline`.

    Raises BuildError: that of the runner, CRASHED or OUT_OF_MEMORY where its process dies, DEADLINE_EXCEEDED where it
    does not answer.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    child = context.Process(target=_serve, args=(there, builder, folder, request), name=name, daemon=True)
    child.start()
    there.close()
    try:
        near = _Remote(child, here, name)
        yield _RemoteLanguage(child, here, name) if near.answer() else near
    finally:
        here.close()
        child.join(END_S)
        if child.is_alive():
            child.kill()
            child.join()
        child.close()


class _Remote:
    """The near end."""

    def __init__(self, child: SpawnProcess, connection: Connection, name: str) -> None:
        self._child, self._connection, self._name = child, connection, name
        self._kills = oom_kills()

    def run(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """Return the outputs by name. Raises BuildError."""
        outputs: Mapping[str, Array] = self.request(RUN, dict(inputs))
        return outputs

    def request(self, method: str, argument: Any) -> Any:
        """Return what a method of the far end's runner returns. Raises BuildError."""
        try:
            self._connection.send((method, argument))
        except OSError:
            raise self._died() from None
        return self.answer()

    def answer(self) -> Any:
        """Return the next answer. Raises BuildError."""
        try:
            if not self._connection.poll(ANSWER_S):
                self._child.kill()
                message = f"{self._name} has not answered for {ANSWER_S:g} s: try other engine.options"
                raise BuildError(BuildFailure.DEADLINE_EXCEEDED, message)
            value = self._connection.recv()
        except (EOFError, ConnectionError):
            raise self._died() from None
        if isinstance(value, BuildError):
            raise value
        return value

    def _died(self) -> BuildError:
        self._child.join(END_S)
        status = self._child.exitcode
        return explained(self._name, 1 if status is None else status, (), ran_out_of_memory=oom_kills() > self._kills)


class _RemoteLanguage(_Remote):
    """The near end of a language model that reads text itself."""

    def log_likelihood(self, text: str) -> tuple[float, int]:
        """Return the log-likelihood of a text and the number of its tokens. Raises BuildError."""
        likelihood, count = self.request(READ, text)
        return float(likelihood), int(count)


def _serve(connection: Connection, builder: str, folder: Path, request: BuildRequest) -> None:
    """Open the runner, then answer until the near end closes."""
    die_with_parent()
    try:
        with registry.resolve(builder).runner(folder, request) as runner:
            connection.send(hasattr(runner, READ))
            while True:
                method, argument = connection.recv()
                connection.send(getattr(runner, method)(argument))
    except (EOFError, ConnectionError):
        return
    except BuildError as error:
        connection.send(error)
    except Exception as error:
        traceback.print_exc()
        connection.send(BuildError(BuildFailure.BUILD_FAILED, f"{folder} does not answer: {error}"))
