"""The release of TensorRT-LLM in an image, by its tag: an engine is opened only by the release that built it."""

import re
from collections.abc import Mapping

TENSORRT_LLM_OF: Mapping[str, str] = {
    "25.08": "0.21.0",
    "25.10": "1.0.0",
    "25.12": "1.1.0",
    "26.01": "1.1.0",
    "26.02": "1.1.0",
    "26.03": "1.2.0rc8",
    "26.04": "1.2.1",
    "26.05": "1.2.1",
    "26.06": "1.2.1",
    "26.07": "1.2.1",
}
"""By releases of NVIDIA's server. Later ones have no backend that opens engines."""
_SERVER = re.compile(r":(\d\d\.\d\d)-trtllm-python-py3(?:@|$)")
_BUILDER = re.compile(r"/tensorrt-llm/(?:release|devel):(\d+\.\d+\.\d+[a-z0-9.]*)(?:@|$)")
_COMPILER = re.compile(r"\btensorrt_llm (\S+?)(?:,|$)")


def release_in(image: str) -> str:
    """Return the release of TensorRT-LLM in an image of NVIDIA's; empty where its name does not say."""
    if match := _SERVER.search(image):
        return TENSORRT_LLM_OF.get(match[1], "")
    match = _BUILDER.search(image)
    return match[1] if match else ""


def release_of(compiler: str) -> str:
    """Return the release of TensorRT-LLM that compiled an engine, by its report's compiler; empty for other compilers,
    or where it is not known.
    """
    match = _COMPILER.search(compiler)
    return match[1] if match else ""


def mismatch(compiler: str, release: str) -> str:
    """Return why a server with this `release` of TensorRT-LLM cannot open an engine; empty where it can, or where
    either is not known.
    """
    built = release_of(compiler)
    if not built or not release or built == release:
        return ""
    return (
        f"it was built by TensorRT-LLM {built}, and the pool's server has {release}, which opens only what it built "
        f"itself: set the pool's spec.runtime.image to a release with {built}{_servers_with(built)}, or "
        f"spec.engine.image to one with {release}"
    )


def _servers_with(release: str) -> str:
    servers = [server for server, has in TENSORRT_LLM_OF.items() if has == release]
    return f" (tritonserver:{servers[-1]}-trtllm-python-py3)" if servers else ""
