"""Ray Serve's two deployments."""

import os
import signal

import ray
from ray import serve


@serve.deployment
class Model:
    def __init__(self, name):
        import models

        self._answer = getattr(models, name)

    async def __call__(self, request):
        body = await request.json()
        return {"output": self._answer(body["input"]).tolist()}


if __name__ == "__main__":
    ray.init(include_dashboard=False, num_cpus=4, log_to_driver=False)
    serve.start(http_options={"host": "127.0.0.1", "port": int(os.environ["PORT"])})
    for name in ("echo", "classify"):
        serve.run(Model.bind(name), name=name, route_prefix=f"/{name}")
    print("serving", flush=True)
    signal.sigwait([signal.SIGTERM, signal.SIGINT])
    serve.shutdown()
    ray.shutdown()
