"""Names of resources in Kubernetes, where they are often shorter: DNS labels, label values.

A name that fits stays as it is. Any other is cut and gets a digest of the whole name behind it; so does a name that
could be taken for such a one. Hence different names stay different.
"""

import hashlib
import re

LONGEST = 63
"""The most characters of a DNS label and of a label's value."""
_DIGITS = 10
_DIGEST_END = re.compile(rf".*-[0-9a-f]{{{_DIGITS}}}")
_DNS_1035 = re.compile(rf"[a-z]([-a-z0-9]{{0,{LONGEST - 2}}}[a-z0-9])?")
_POOL = "-pool"
_STATE = "-state"
_PICKER = "-epp"
_BUILD, _REPORT = "-build-", "-report"
_REQUEST = 20
_LONGEST_PROFILED = 43
"""Characters of a model's name before `-profile-`, 5 characters of the API server's, and 6 of the Job's controller."""


def label(name: str) -> str:
    """Return a resource's name as the value of a label, or the last part of a label's key: at most 63 characters."""
    if len(name) < LONGEST or (len(name) == LONGEST and not _DIGEST_END.fullmatch(name)):
        return name
    return _with_digest(name, name, LONGEST)


def object_name(name: str) -> str:
    """Return the name of a server's objects: a DNS subdomain of at most 63 characters.

    It is shorter than Kubernetes requires, so that it fits into the names and labels of a Deployment's Pods.
    """
    return label(name)


def state_name(server: str) -> str:
    """Return the name of the ConfigMap that a server's agent writes its state into; no other object has this name."""
    return object_name(server) + _STATE


def activator_name(pool: str) -> str:
    """Return the name of a pool's activator and of its objects. No server's or other pool's objects have it."""
    return _with_digest(f"{pool}-activator", pool, LONGEST - len(_STATE))


def build_name(pool: str, request: str) -> str:
    """Return what an engine's build is called, by its pool and the name of its request (20 characters): a DNS
    subdomain.

    Short enough that the names of its Job's Pods and of its report, which have more behind it, have 63 at most, too.
    """
    most = LONGEST - len(_REPORT) - len(_BUILD) - _REQUEST
    return f"{pool if len(pool) < most else _with_digest(pool, pool, most)}{_BUILD}{request}"


def profile_name(model: str) -> str:
    """Return what the name of a Job that profiles a model begins with, so short that its Pod's name has 63 characters
    at most.
    """
    short = _with_digest(model, model, _LONGEST_PROFILED) if len(model) > _LONGEST_PROFILED else model
    return f"{short}-profile-"


def report_name(build: str) -> str:
    """Return the name of the ConfigMap in which a build says how far it is."""
    return build + _REPORT


def builds_policy_name(pool: str) -> str:
    """Return the name of the NetworkPolicy of a pool's builds; never that of another pool, which is called like it."""
    return _with_digest(f"{pool}-builds", pool, LONGEST)


def revision_name(name: str, digest: str) -> str:
    """Return the name of the ControllerRevision of a resource of this name; `digest` differs for other specs of it."""
    return f"{label(name)}-{digest[:_DIGITS]}"


def template_name(server: str, digest: str) -> str:
    """Return the name of the ResourceClaimTemplate of a server's objects of this name; `digest` differs for other
    devices.
    """
    return f"{server}-gpus-{digest[:_DIGITS]}"


def service_name(name: str) -> str:
    """Return the name of the Service of a model or an ensemble: a DNS-1035 label of at most 63 characters, never that
    of a pool's.
    """
    if _DNS_1035.fullmatch(name) and not _DIGEST_END.fullmatch(name) and not name.endswith(_POOL):
        return name
    return _with_digest(_cleaned(name), name, LONGEST)


def picker_name(model: str) -> str:
    """Return the name of the Service of a model's endpoint picker, as the inference extension's chart names it: the
    InferencePool's name, which is that of the model's Service, with `-epp` behind it.
    """
    name, most = service_name(model), LONGEST - len(_PICKER)
    return f"{name if len(name) <= most else _with_digest(name, name, most)}{_PICKER}"


def pool_service_name(pool: str) -> str:
    """Return the name of the Service of all of a pool's servers: a DNS-1035 label of at most 63 characters that ends in
    `-pool`.
    """
    if _DNS_1035.fullmatch(pool + _POOL) and not _DIGEST_END.fullmatch(pool):
        return pool + _POOL
    return _with_digest(_cleaned(pool), pool, LONGEST - len(_POOL)) + _POOL


def volume_name(claim: str) -> str:
    """Return the name of a Pod's volume for a PersistentVolumeClaim of this name: a DNS label that begins with
    `claim-`.
    """
    return service_name(f"claim-{claim}")


def secret_volume_name(secret: str) -> str:
    """Return the name of a Pod's volume for a model's Secret of this name: a DNS label that begins with `secret-`."""
    return service_name(f"secret-{secret}")


def _cleaned(name: str) -> str:
    text = re.sub(r"[^-a-z0-9]", "-", name)
    return text if text[:1].isalpha() else f"m-{text}"


def _with_digest(text: str, name: str, most: int) -> str:
    """Return at most `most` characters of `text` and the digest of `name`; exactly that many where `text` is cut."""
    cut = text[: most - _DIGITS - 1]
    # A separator may not stand before another one, and a cut text must keep its length: `label` tells by it.
    cut = cut.rstrip("-.").ljust(len(cut), "x")
    return f"{cut}-{hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]}"
