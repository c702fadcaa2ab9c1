"""`argosy up` that runs NVIDIA's server in pools that name it, which it replaces by the bundled one otherwise.

Rounds, rendering, agents, measuring and analysis are Argosy's own; a cluster's operator has the same for such a pool.
"""

import sys

from argosy.api.documents import Resource
from argosy.api.servingpool import ServingPool
from argosy.cli.main import main
from argosy.local.manifests import this_machine
from argosy.local.servers.fleet import LocalFleet

PROGRAM = (sys.executable, "-m", "tests.serve.releases.triton_server")
_bundled = this_machine._for_this_machine


def _for_this_machine(resource: Resource, gpus: int) -> Resource:
    """Return a resource for this machine, where a pool's server stays the one that it names."""
    here = _bundled(resource, gpus)
    if not isinstance(here, ServingPool) or not isinstance(resource, ServingPool):
        return here
    runtime = here.spec.runtime.model_copy(update={"name": resource.spec.runtime.name})
    return here.model_copy(update={"spec": here.spec.model_copy(update={"runtime": runtime})})


if __name__ == "__main__":
    this_machine._for_this_machine = _for_this_machine
    LocalFleet.__init__.__defaults__ = (PROGRAM,)  # type: ignore[misc]
    main()
