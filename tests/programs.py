"""`python -m tests.programs`: brings programs and images that tests need and pip does not, before tests' clocks run.

What is there already costs a second. Where something cannot be had the tests that need it are skipped, and this says
why; under CI=true nothing may be skipped, so it ends with 1.
"""

import importlib
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from e2e.cluster import ClusterError, ClusterUnavailableError
from e2e.cluster.images import buildah
from e2e.cluster.node import node
from e2e.cluster.policy import Machine, Verdict, verdict
from e2e.cluster.programs import binaries, crd_apiserver, packages
from e2e.deployed import builds, engines
from tests.peers import perf_analyzer, prometheus, s3, tensorrt_lean, triton, vllm
from tests.peers.cache import PeerUnavailableError
from tests.peers.python import other_python

Brings = Iterator[tuple[str, Callable[[], object]]]


def main() -> None:
    """Bring everything: images and what is built, while other things are downloaded or installed."""
    with ThreadPoolExecutor(3) as pool:
        failed = list(pool.map(_bring, (_images(), _programs(), _built())))
    sys.exit(any(failed))


def _bring(those: Brings) -> bool:
    """Bring one after the other; return whether one failed that may not."""
    failed = False
    for what, bring in those:
        start = time.monotonic()
        try:
            bring()
        except (ClusterError, ClusterUnavailableError, PeerUnavailableError, ImportError) as error:
            outcome, line = verdict(Machine.here(), str(error))
            failed |= outcome is Verdict.FAIL
            print(f"{what}: {line}", flush=True)
        else:
            print(f"{what}: there ({time.monotonic() - start:.0f} s)", flush=True)
    return failed


def _images() -> Brings:
    yield "base image", buildah.ensure_base
    # While tests run this takes three times as long, and the longest row of them waits for it.
    yield "images of the end-to-end tests", builds.prepare


def _programs() -> Brings:
    yield "curl", lambda: packages.ensure([packages.CURL])
    yield "Helm's library", lambda: importlib.import_module("helm_sdkpy")
    yield "S3 server", s3.install
    yield "Prometheus", prometheus.install
    yield "tritonserver", triton.install
    yield "perf_analyzer", perf_analyzer.install
    yield "another Python", other_python
    yield "vLLM", vllm.install
    yield "vLLM on the node", engines.prepare
    for release in tensorrt_lean.RELEASES:
        yield f"TensorRT's lean runtime {release}", lambda release=release: tensorrt_lean.tensorrt_lean(release)
    yield "Kubernetes' control plane", binaries.find
    yield "a node's programs", lambda: node.check_possible(binaries.find(*binaries.NODE))


def _built() -> Brings:
    yield "Kubernetes' API server of custom resources", crd_apiserver.find


if __name__ == "__main__":
    main()
