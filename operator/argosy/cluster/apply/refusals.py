"""Explains to users why an object cannot be applied, and what to do. Pure."""

import re

from argosy.cluster.client.errors import ApiError, ForbiddenError, InvalidError, NotFoundError, TooLargeError
from argosy.cluster.client.kinds import Kind

_NO_WEBHOOK = "failed calling webhook"
_NO_RIGHT = re.compile(r"cannot (\w+) resource")


class RefusedError(Exception):
    """An object cannot be applied until a user changes something; the message says what."""


class NoNeedError(Exception):
    """An object need not be applied: its namespace is terminating."""


def judged(error: ApiError, kind: Kind, namespace: str) -> Exception:
    """Return what an error means for the object: RefusedError, NoNeedError, or the error itself where a retry may
    help.
    """
    if isinstance(error, ForbiddenError):
        return NoNeedError() if error.namespace_ends else RefusedError(_forbidden(error, kind, namespace))
    if isinstance(error, NotFoundError):
        return NoNeedError() if error.message.startswith("namespaces ") else RefusedError(_unknown(kind))
    if isinstance(error, TooLargeError):
        return RefusedError(
            f"is larger than the API server stores ({error.message}); spread its models over more servers"
        )
    if _NO_WEBHOOK in error.message:
        return RefusedError(f"waits for an admission webhook of the cluster that does not answer: {error.message}")
    if isinstance(error, InvalidError):
        return RefusedError(f"is not accepted by the API server: {error.message}")
    return error


def _forbidden(error: ForbiddenError, kind: Kind, namespace: str) -> str:
    verb = _NO_RIGHT.search(error.message)
    if verb is None:
        return f"is not admitted by the API server: {error.message}"  # a quota, a webhook, rights that it may not give
    return (
        f"the operator may not {verb.group(1)} {kind.plural} in namespace {namespace}: grant that to its service "
        f"account ({error.message})"
    )


def _unknown(kind: Kind) -> str:
    return f"the API server does not know {kind.api_version} {kind.name}; it is too old or too new for this release"
