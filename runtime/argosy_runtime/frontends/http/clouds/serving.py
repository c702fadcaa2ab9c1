"""The ports of clouds on sockets."""

from argosy_runtime.frontends.http.app import HttpApp, HttpOptions
from argosy_runtime.frontends.http.wire.application import Application
from argosy_runtime.frontends.http.wire.listener import HttpListener
from argosy_runtime.frontends.port import DataPlane
from argosy_runtime.frontends.sockets import bind

from . import sagemaker, vertex


async def serve_sagemaker(
    plane: DataPlane, options: HttpOptions, requested: sagemaker.SageMakerOptions
) -> HttpListener:
    """Serve SageMaker's port; returns once connections are accepted. `options` are those of HTTP, also
    its TLS; their port is unused.

    Raises UNAVAILABLE, naming the flag, where the port cannot be had.
    """
    app = sagemaker.SageMakerApp(HttpApp(plane, options), plane, options, requested)
    return await _serve(app, options, requested.port, sagemaker.PORT_FLAG)


async def serve_vertex_ai(plane: DataPlane, options: HttpOptions, requested: vertex.VertexAiOptions) -> HttpListener:
    """Serve Vertex AI's port. Otherwise as `serve_sagemaker`."""
    app = vertex.VertexAiApp(HttpApp(plane, options), plane, requested)
    return await _serve(app, options, requested.port, vertex.PORT_FLAG)


async def _serve(app: Application, options: HttpOptions, port: int, flag: str) -> HttpListener:
    socket = bind(options.host, port, flag)
    listener = HttpListener(app, socket, options.max_input_size, options.timeouts, options.tls)
    await listener.start()
    return listener
