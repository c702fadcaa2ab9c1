"""vLLM's exceptions as serving errors."""

from argosy_runtime.errors import ErrorKind, FailureReason, ServingError, internal, invalid
from argosy_runtime.failures.translation import failure
from argosy_runtime.language.sampling import NAMES

from .opening.library import Library


def serving_error(library: Library, name: str, error: BaseException) -> ServingError:
    """Return the error of a request that an exception ended. A dead engine is the caller's to handle."""
    if isinstance(error, ServingError):
        return error
    if isinstance(error, library.VLLMNotFoundError):
        return ServingError(ErrorKind.NOT_FOUND, str(error))
    if isinstance(error, library.GracefulHTTPError):
        return ServingError(ErrorKind.UNAVAILABLE, f"model instance '{name}': {error}", FailureReason.REJECTED)
    cause = _cause(error)
    if isinstance(cause, library.VLLMClientError | ValueError | TypeError | NotImplementedError):
        return invalid(_refusal(cause))
    if not isinstance(cause, Exception):
        return internal(f"model instance '{name}': {type(cause).__name__}: {cause}")
    return failure(f"model instance '{name}': {type(cause).__name__}: {cause}", cause)


def _refusal(cause: BaseException) -> str:
    """Return why vLLM refuses a request; of a parameter of sampling as this server's own messages name it."""
    parameter = getattr(cause, "parameter", None)
    if parameter in NAMES and cause.args:
        return f"sampling_parameters: '{parameter}': {cause.args[0]}"
    return str(cause) or type(cause).__name__


def _cause(error: BaseException) -> BaseException:
    """Return the exception below vLLM's wrapper around unexpected ones, which says nothing."""
    if type(error).__name__ == "EngineGenerateError" and error.__cause__ is not None:
        return error.__cause__
    return error
