"""kopf's handlers for the three kinds: the API server has each spec validated before it stores it.

The handlers are coroutines, though they wait for nothing: kopf runs plain functions in threads.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import kopf

from argosy.api import GROUP, VERSION
from argosy.api.documents import Resource, parse_body
from argosy.cluster.client.access import Access
from argosy.cluster.client.kinds import RESOURCES
from argosy.status.advice import rollout_advice
from argosy_common.wording import shortened

log = logging.getLogger(__name__)

PATH = "validate"
"""The path of the webhook; kopf calls a handler by its id."""
UNPROCESSABLE = 422
LONGEST_WARNING = 256
"""Characters of a warning; API servers cut longer ones where there are several."""
TOKEN_LIFE = timedelta(minutes=10)
"""How long kopf uses one token: a Pod's is replaced within the hour, and stays valid for a while after."""
LogIn = Callable[[], Awaitable[Access]]


def registry(access: LogIn) -> kopf.OperatorRegistry:
    """Return kopf's handlers; kopf logs in with the credentials that `access` returns."""
    handlers = kopf.OperatorRegistry()
    kopf.on.login(registry=handlers)(_login(access))
    for kind in RESOURCES.values():
        register = kopf.on.validate(
            GROUP, VERSION, kind.plural, registry=handlers, id=PATH, operations=["CREATE", "UPDATE"]
        )
        register(validate)
    return handlers


async def validate(body: kopf.Body, warnings: list[str], old: Mapping[str, Any] | None = None, **_: Any) -> None:
    """Refuse a resource whose spec is invalid. Raises kopf.AdmissionError with all errors.

    `warnings` get what a valid spec's rollout will do that may surprise; kubectl shows them.
    An error of this validation itself refuses nothing: the resource is stored, and its status reports the error.
    """
    try:
        before = None if old is None else dict(old)
        message = refusal(dict(body), before)
        notes = [] if message else advice(dict(body), before)
    except Exception as error:
        log.exception("a resource cannot be validated")
        warnings.append(f"Argosy could not validate this resource ({type(error).__name__}); see its status")
        return
    if message:
        raise kopf.AdmissionError(message, code=UNPROCESSABLE)
    warnings += notes


def refusal(body: Mapping[str, Any], old: Mapping[str, Any] | None) -> str:
    """Return all errors of a resource, one a line; empty where it is valid.

    A resource that is being deleted, and one whose spec stays as it is in `old`, is never refused: an older invalid
    resource can be labelled, and its finalizers removed.
    """
    deleted = body["metadata"].get("deletionTimestamp") is not None
    if deleted or (old is not None and body.get("spec") == old.get("spec")):
        return ""
    _, problems = parse_body({key: value for key, value in body.items() if key != "status"})
    if not problems:
        return ""
    errors = [f"{problem.path}: {problem.message}" if problem.path else problem.message for problem in problems]
    return "\n".join([f"{problems[0].resource} is invalid:", *(f"- {error}" for error in errors)])


def advice(body: Mapping[str, Any], old: Mapping[str, Any] | None) -> list[str]:
    """Return what a valid resource's rollout will do that may surprise; nothing where the spec stays as it is."""
    if body["metadata"].get("deletionTimestamp") is not None or (old is not None and body["spec"] == old.get("spec")):
        return []
    resource, before = _resource(body), _resource(old) if old is not None else None
    notes = rollout_advice(resource, before) if resource is not None else []
    return [shortened(note, LONGEST_WARNING) for note in notes]


def _resource(body: Mapping[str, Any]) -> Resource | None:
    return parse_body({key: value for key, value in body.items() if key != "status"})[0]


def _login(access: LogIn) -> Callable[..., Awaitable[kopf.ConnectionInfo]]:
    async def login(**_kwargs: Any) -> kopf.ConnectionInfo:
        """Return the operator's own credentials; kopf asks again when they have expired."""
        own = await access()
        scheme, _, token = (own.authorization or "").partition(" ")
        return kopf.ConnectionInfo(
            server=own.server,
            ca_path=own.authority_file,
            certificate_path=own.certificate_file,
            private_key_path=own.key_file,
            insecure=own.insecure,
            proxy_url=own.proxy,
            scheme=scheme or None,
            token=token or None,
            expiration=datetime.now(UTC) + TOKEN_LIFE,
        )

    return login
