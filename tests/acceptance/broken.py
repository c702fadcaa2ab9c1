"""Models with one thing wrong each, next to a good one."""

from dataclasses import dataclass
from pathlib import Path

from onnx import TensorProto, helper, save_model
from tests.acceptance.running import Workspace

MODEL = """
---
apiVersion: argosy.dev/v1alpha1
kind: InferenceModel
metadata: {{name: {name}}}
spec:
  poolRef: {{name: laptop}}
  modelFormat: {{name: {format}}}
  version: 1
  storageUri: file:{source}
  inputs: [{{name: {input}, dataType: {data_type}, dims: {dims}}}]
  outputs: [{{name: {output}, dataType: TYPE_FP32, dims: [4]}}]
  config: {config}
"""


@dataclass(frozen=True)
class Broken:
    """One model. `says` are words that its status must have: what is wrong, and what to do about it."""

    name: str
    says: tuple[str, ...]
    format: str = "onnx"
    source: str = ""
    body: str = ""
    input: str = "X"
    output: str = "Y"
    data_type: str = "TYPE_FP32"
    dims: str = "[4]"
    config: str = "{}"
    reason: str = "LoadFailed"

    @property
    def manifest(self) -> str:
        """Its document."""
        return MODEL.format(**{**self.__dict__, "source": self.source or self.name})


def write_onnx(path: Path) -> None:
    """Write Y = 2 X, of four numbers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    four = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "XY"]
    node = helper.make_node("Add", ["X", "X"], ["Y"])
    model = helper.make_model(
        helper.make_graph([node], "double", four[:1], four[1:]), opset_imports=[helper.make_opsetid("", 17)]
    )
    model.ir_version = 8
    save_model(model, path)


def prepare(workspace: Workspace, models: tuple[Broken, ...]) -> None:
    """Write the models' files: a good ONNX model for those without a body, a Python model for those with one."""
    write_onnx(workspace.manifests / "onnx" / "model.onnx")
    for model in models:
        if model.body:
            workspace.write_model(model.name, 2.0, body=model.body)
