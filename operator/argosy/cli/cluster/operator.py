"""`argosy operator`: the controller that runs in a cluster."""

import asyncio
import gc
import logging
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from argosy.cli.terminal import refuse

if TYPE_CHECKING:
    from argosy.controller.process import Options

RELEASE = version("argosy")
ARGOSY_IMAGE = f"argosy-runtime:{RELEASE}"
# The last release with TensorRT-LLM 1.2.1, by which engines are built, and with a backend that opens engines.
ARGOSY_CUDA_IMAGE, ARGOSY_VLLM_IMAGE = f"{ARGOSY_IMAGE}-cuda", f"{ARGOSY_IMAGE}-vllm"
ARGOSY_TENSORRT_LLM_IMAGE = f"{ARGOSY_IMAGE}-tensorrt-llm"
TRITON = "nvcr.io/nvidia/tritonserver:26.07"
TRITON_IMAGE, TRITON_VLLM_IMAGE = f"{TRITON}-py3", f"{TRITON}-vllm-python-py3"
TRITON_TRTLLM_IMAGE = f"{TRITON}-trtllm-python-py3"
PLACEHOLDER_IMAGE = "registry.k8s.io/pause:3.10"
LOG_LEVELS = {"httpx": logging.WARNING, "kopf.objects": logging.CRITICAL}
GC_THRESHOLDS = (50_000, 10, 10)
"""For `gc.set_threshold`. A round creates tens of objects for each model and keeps them until the next one: at the
default of 700 the collector, which frees none of them, takes a fifth of a round's time.
"""
_IMAGES, _ENDPOINTS, _CLUSTER = "Images", "Health and metrics", "Cluster"


def operator(
    namespace: Annotated[
        list[str] | None,
        typer.Option(help="Watch this namespace; may be repeated. Default: all.", rich_help_panel=_CLUSTER),
    ] = None,
    lease: Annotated[
        str, typer.Option(help="The leader's lease, as NAMESPACE/NAME.", rich_help_panel=_CLUSTER)
    ] = "default/argosy-operator",
    host: Annotated[
        str, typer.Option(help="The address of /healthz, /readyz and /metrics.", rich_help_panel=_ENDPOINTS)
    ] = "0.0.0.0",
    port: Annotated[int, typer.Option(help="Their port.", min=0, max=65535, rich_help_panel=_ENDPOINTS)] = 8080,
    argosy_image: Annotated[
        str, typer.Option(help="The image of the bundled server, for servers without GPUs.", rich_help_panel=_IMAGES)
    ] = ARGOSY_IMAGE,
    argosy_cuda_image: Annotated[
        str,
        typer.Option(
            help="The bundled server with CUDA, for servers with GPUs and formats that need torch.",
            rich_help_panel=_IMAGES,
        ),
    ] = ARGOSY_CUDA_IMAGE,
    argosy_vllm_image: Annotated[
        str,
        typer.Option(
            help="The bundled server with vLLM, for pools with models of that format.", rich_help_panel=_IMAGES
        ),
    ] = ARGOSY_VLLM_IMAGE,
    argosy_tensorrt_llm_image: Annotated[
        str,
        typer.Option(
            help="The bundled server with TensorRT-LLM, for pools with models of that format.", rich_help_panel=_IMAGES
        ),
    ] = ARGOSY_TENSORRT_LLM_IMAGE,
    triton_image: Annotated[
        str, typer.Option(help="The image of NVIDIA's server.", rich_help_panel=_IMAGES)
    ] = TRITON_IMAGE,
    triton_vllm_image: Annotated[
        str,
        typer.Option(help="NVIDIA's server with vLLM, for pools with models of that format.", rich_help_panel=_IMAGES),
    ] = TRITON_VLLM_IMAGE,
    triton_trtllm_image: Annotated[
        str,
        typer.Option(
            help="NVIDIA's server with TensorRT-LLM, for pools with models of that format.", rich_help_panel=_IMAGES
        ),
    ] = TRITON_TRTLLM_IMAGE,
    agent_image: Annotated[
        str, typer.Option(help="The agent's image. Default: the bundled server's.", rich_help_panel=_IMAGES)
    ] = "",
    placeholder_image: Annotated[
        str, typer.Option(help="The image of placeholders, which runs nothing.", rich_help_panel=_IMAGES)
    ] = PLACEHOLDER_IMAGE,
    pull_policy: Annotated[
        str, typer.Option(help="imagePullPolicy of these images.", rich_help_panel=_IMAGES)
    ] = "IfNotPresent",
    build_priority_class: Annotated[
        str, typer.Option(help="The PriorityClass of engine builds' Pods. Default: the cluster's default.")
    ] = "",
    placeholder_priority_class: Annotated[
        str,
        typer.Option(
            help="The PriorityClass of placeholders, below that of servers: a negative value of at least -10. Default: "
            "none, so that there are no placeholders."
        ),
    ] = "",
    admission_certificates: Annotated[
        Path | None,
        typer.Option(
            help="The folder of tls.crt and tls.key. Default: no admission reviews are answered.",
            rich_help_panel=_ENDPOINTS,
        ),
    ] = None,
    admission_port: Annotated[
        int, typer.Option(help="The port of admission reviews.", min=1, max=65535, rich_help_panel=_ENDPOINTS)
    ] = 9443,
    bundles: Annotated[
        Path | None,
        typer.Option(
            help="A folder for bundles: what the newest rounds saw and decided, for argosy replay. Default: none.",
            rich_help_panel=_ENDPOINTS,
        ),
    ] = None,
    resync: Annotated[float, typer.Option(help="Seconds after which every pool is reconciled again.", min=1)] = 300.0,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(help="Outside a cluster: how to reach it.", exists=True, rich_help_panel=_CLUSTER),
    ] = None,
) -> None:
    """Reconcile Argosy's resources in a Kubernetes cluster until stopped.

    Of several replicas one is the leader, and the others stand by. All of them answer admission reviews.

    Exit status: 0 when it was stopped; 1 when the lease was lost, the API server cannot be used, or permissions are
    missing.
    """
    try:
        from argosy.controller.process import Options
        from argosy.render.workloads import Images
    except ModuleNotFoundError as missing:
        _refuse_without(missing)
    images = Images(
        argosy=argosy_image,
        triton=triton_image,
        agent=agent_image or argosy_image,
        pull_policy=pull_policy,
        triton_vllm=triton_vllm_image,
        triton_trtllm=triton_trtllm_image,
        argosy_cuda=argosy_cuda_image,
        argosy_vllm=argosy_vllm_image,
        argosy_tensorrt_llm=argosy_tensorrt_llm_image,
        placeholder=placeholder_image,
    )
    options = Options(
        images,
        tuple(namespace or ()),
        _lease(lease),
        host,
        port,
        resync,
        kubeconfig,
        build_priority_class,
        placeholder_priority_class,
        bundles,
    )
    log_to_stderr()
    gc.set_threshold(*GC_THRESHOLDS)
    raise typer.Exit(_run(options, admission_certificates, admission_port))


def _refuse_without(missing: ModuleNotFoundError) -> NoReturn:
    refuse([f"argosy operator needs {missing.name}: pip install 'argosy[operator]'"])


def _lease(text: str) -> tuple[str, str]:
    """Return the namespace and the name of NAMESPACE/NAME. Raises typer.BadParameter."""
    namespace, _, name = text.partition("/")
    if not namespace or not name:
        raise typer.BadParameter(f"{text!r} must be NAMESPACE/NAME", param_hint="--lease")
    return namespace, name


def _run(options: "Options", certificates: Path | None, port: int) -> int:
    """Run the controller until it is stopped, with an admission server where it has certificates.

    Return the exit status.
    """
    try:
        from argosy.cluster.client.access import CredentialsError
        from argosy.controller.process import Operator, StartError
        from argosy.handlers.admission import Admission
    except ModuleNotFoundError as missing:
        _refuse_without(missing)
    try:
        admission = Admission(options.host, port, certificates).run if certificates is not None else None
        return asyncio.run(Operator(options, admission).run())
    except (CredentialsError, StartError) as error:
        refuse([str(error)])


def log_to_stderr() -> None:
    """Log from INFO on, httpx, which logs each reading of a server, from WARNING on.

    kopf logs an error for each resource that is refused: it is the user's, who has the API server's answer.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for name, level in LOG_LEVELS.items():
        logging.getLogger(name).setLevel(level)
