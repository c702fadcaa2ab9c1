"""The example of trees: its manifest, its file and its request fit together, and the script makes such a file."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.examples.conftest import Collector, import_file

from argosy.api import InferenceModel
from argosy.local.manifests.reading import read_manifests
from argosy.render.config.model_config import Devices, model_config
from argosy_runtime.backends import fil
from argosy_runtime.backends.contract import InstanceSpec
from argosy_runtime.messages import InferRequest, Tensor

TREES = Path(__file__).parents[2] / "examples" / "trees"


def test_the_request_is_answered_as_the_page_says(tmp_path: Path) -> None:
    manifests = read_manifests(TREES)
    assert not manifests.problems
    (wine,) = [resource for resource in manifests.resources if isinstance(resource, InferenceModel)]
    (tmp_path / "model.txt").write_bytes((TREES / "models" / "wine.txt").read_bytes())
    config = fil.complete_config(tmp_path, tmp_path, model_config(wine, Devices(), [1]))
    spec = InstanceSpec(config, 1, tmp_path, tmp_path, "wine_0", "KIND_CPU", 0)
    instance = fil.load(spec, host=None)  # type: ignore[arg-type]  # trees call no server
    (tensor,) = json.loads((TREES / "request.json").read_text())["inputs"]
    rows = Tensor(tensor["name"], tensor["datatype"], np.array(tensor["data"], np.float32).reshape(tensor["shape"]))
    collector = Collector()
    instance.execute([InferRequest("wine", {rows.name: rows})], collector)
    instance.close()
    (response,) = collector.responses
    assert response.error is None
    (kinds,) = [output.array.tolist() for output in response.outputs]
    assert f"the answer is `{json.dumps(kinds, separators=(',', ':'))}`" in (TREES / "README.md").read_text()


def test_the_script_makes_the_trees_and_the_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["train.py", "--out", str(tmp_path)])
    import_file(TREES / "train.py").main()
    assert float(capsys.readouterr().out.rsplit(maxsplit=1)[1]) > 0.9
    assert (tmp_path / "request.json").read_text() == (TREES / "request.json").read_text()
    features = [
        line
        for folder in (tmp_path, TREES)
        for line in (folder / "models" / "wine.txt").read_text().splitlines()
        if line.startswith("feature_infos=")
    ]
    assert features[0] == features[1]
