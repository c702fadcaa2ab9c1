"""`argosy operator`: the controller that runs in a cluster."""

import asyncio
import gc
import logging
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

RELEASE = version("argosy")
ARGOSY_IMAGE = f"argosy-runtime:{RELEASE}"
TRITON = "nvcr.io/nvidia/tritonserver:25.08"
TRITON_IMAGE, TRITON_VLLM_IMAGE = f"{TRITON}-py3", f"{TRITON}-vllm-python-py3"
TRITON_TRTLLM_IMAGE = f"{TRITON}-trtllm-python-py3"
COLLECTED_AFTER = (50_000, 10, 10)
"""For `gc.set_threshold`. A round makes tens of objects for each model and keeps them until the next: at the default
of 700 a fifth of its time goes into looking through them for garbage that is not there.
"""


def operator(
    namespace: Annotated[list[str] | None, typer.Option(help="Watch this namespace; may be repeated.")] = None,
    lease: Annotated[str, typer.Option(help="The lease of the leader, as NAMESPACE/NAME.")] = "default/argosy-operator",
    host: Annotated[str, typer.Option(help="The address of /healthz, /readyz and /metrics.")] = "0.0.0.0",
    port: Annotated[int, typer.Option(help="Their port.", min=0, max=65535)] = 8080,
    argosy_image: Annotated[str, typer.Option(help="The bundled server's image.")] = ARGOSY_IMAGE,
    triton_image: Annotated[str, typer.Option(help="The image of NVIDIA's server.")] = TRITON_IMAGE,
    triton_vllm_image: Annotated[
        str, typer.Option(help="NVIDIA's with vLLM, for pools with models of that format.")
    ] = TRITON_VLLM_IMAGE,
    triton_trtllm_image: Annotated[
        str, typer.Option(help="NVIDIA's with TensorRT-LLM, for pools with models of that format.")
    ] = TRITON_TRTLLM_IMAGE,
    agent_image: Annotated[str, typer.Option(help="The agent's image. Default: the bundled server's.")] = "",
    pull_policy: Annotated[str, typer.Option(help="When those images are pulled.")] = "IfNotPresent",
    build_priority_class: Annotated[
        str, typer.Option(help="The PriorityClass of engine builds' Pods. Default: the cluster's default.")
    ] = "",
    resync: Annotated[float, typer.Option(help="Seconds after which every pool is looked at again.", min=1)] = 300.0,
    kubeconfig: Annotated[Path | None, typer.Option(help="Outside a cluster: how to reach it.", exists=True)] = None,
) -> None:
    """Reconcile Argosy's resources in a Kubernetes cluster until stopped.

    Of several replicas one acts and the others stand by. Exit status: 0 when it was stopped, 1 when the lease was lost,
    when the API server cannot be used at all, or when what is needed may not be read.
    """
    try:
        from argosy.cluster.client.access import CredentialsError
        from argosy.controller.process import Operator, Options, StartError
        from argosy.handlers.kopf_feed import KopfFeed
    except ModuleNotFoundError as missing:
        typer.echo(f"argosy operator needs {missing.name}: pip install 'argosy[operator]'", err=True)
        raise typer.Exit(1) from None
    from argosy.render.workloads import Images

    log_to_stderr()
    space, _, name = lease.partition("/")
    if not name:
        raise typer.BadParameter(f"{lease!r} must be NAMESPACE/NAME", param_hint="--lease")
    images = Images(
        argosy_image, triton_image, agent_image or argosy_image, pull_policy, triton_vllm_image, triton_trtllm_image
    )
    namespaces = tuple(namespace or ())
    options = Options(images, namespaces, (space, name), host, port, resync, kubeconfig, build_priority_class)
    gc.set_threshold(*COLLECTED_AFTER)
    try:
        code = asyncio.run(Operator(options, KopfFeed).run())
    except (CredentialsError, StartError) as error:
        typer.echo(str(error), err=True)
        code = 1
    raise typer.Exit(code)


def log_to_stderr() -> None:
    """From INFO on; of libraries with a line for every event of a resource or reading of a server, only troubles."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for chatty in ("kopf.objects", "httpx"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
