"""LitServe's server."""

import os

import litserve
from models import classify, echo


class Echo(litserve.LitAPI):
    def setup(self, device):
        pass

    def predict(self, request):
        return {"output": echo(request["input"]).tolist()}


class Classify(Echo):
    def predict(self, request):
        return {"output": classify(request["input"]).tolist()}


if __name__ == "__main__":
    apis = [Echo(api_path="/echo"), Classify(api_path="/classify")]
    litserve.LitServer(apis, accelerator="cpu").run(
        host="127.0.0.1", port=int(os.environ["PORT"]), generate_client_file=False, log_level="warning"
    )
