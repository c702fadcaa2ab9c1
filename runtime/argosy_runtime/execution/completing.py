"""Autofill of a configuration on a thread of the server, by a backend whose instances run on threads."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends.contract import InstanceSpec
from argosy_runtime.errors import unavailable

from .thread import load_timeout_message, stuck_message

# Versions whose completion has timed out and not returned; nothing can end its thread.
_stuck: Final[set[Path]] = set()


async def complete_in_thread(spec: InstanceSpec, complete: Callable[[], ModelConfig], seconds: float) -> ModelConfig:
    """Return the result of `complete`, run on a daemon thread.

    A file that does not answer must not keep the server alive.

    Raises the exception of `complete`, and ServingError where it takes longer than `seconds`, and while such a
    thread still runs.
    """
    if spec.version_dir in _stuck:
        raise unavailable(stuck_message(spec))
    done = _started(spec, complete)
    try:
        return await asyncio.wait_for(done, seconds)
    except TimeoutError:
        raise unavailable(load_timeout_message(spec, seconds)) from None
    finally:
        if not done.done() or done.cancelled():
            _stuck.add(spec.version_dir)


def _started(spec: InstanceSpec, complete: Callable[[], ModelConfig]) -> asyncio.Future[ModelConfig]:
    """Return the future of `complete` on a daemon thread; whenever that returns, its version is not stuck any more."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[ModelConfig] = loop.create_future()

    def finish(config: ModelConfig | None, problem: Exception) -> None:
        _stuck.discard(spec.version_dir)
        if done.done():
            return
        if config is None:
            done.set_exception(problem)
        else:
            done.set_result(config)

    def work() -> None:
        config: ModelConfig | None = None
        problem: Exception = RuntimeError("nothing was returned")
        try:
            config = complete()
        except (Exception, SystemExit) as error:
            problem = error if isinstance(error, Exception) else RuntimeError(f"SystemExit: {error}")
        if not loop.is_closed():
            loop.call_soon_threadsafe(finish, config, problem)

    threading.Thread(target=work, name=f"model {spec.name}", daemon=True).start()
    return done
