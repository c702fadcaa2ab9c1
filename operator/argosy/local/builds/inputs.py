"""Whether the files that a build read are those that are there now: on a laptop they change under their names."""

from collections.abc import Iterator

from argosy_agent.contract.builds import BuildRequest, digest_of
from argosy_agent.transfer.localfiles import is_file, local_files, local_path


def state_of(request: BuildRequest) -> str:
    """Return a word that changes when a file of this machine which the request names is changed, replaced, added or
    removed.

    By sizes and times: what has the same bytes under a new time is built again, and found in the store. Empty where
    something cannot be read now.
    """
    try:
        return digest_of([_files(uri) for uri in sorted(set(_local_uris(request)))])
    except OSError:
        return ""


def _local_uris(request: BuildRequest) -> Iterator[str]:
    sources = [request.model, request.calibration]
    sources += [request.gate.data, request.gate.script] if request.gate else []
    yield from (each.uri for each in sources if each.uri and is_file(each.uri))


def _files(uri: str) -> list[list[str | int]]:
    return [[str(each.path), each.size, each.changed_ns] for each in local_files(local_path(uri))]
