"""The arguments and the lifetime of a model's code; two models of one interpreter do not meet."""

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from tests.runtime.backends.python.sources import CONFIG, ECHO, THREAD, request

from argosy_runtime.backends import python
from argosy_runtime.errors import ServingError


def test_initialize_gets_everything_as_strings(loaded: Any, responder: Any) -> None:
    source = """
    import json, numpy as np, triton_python_backend_utils as pb
    class TritonPythonModel:
        def initialize(self, args):
            self.args = args
        def execute(self, requests):
            self.args["dir"] = pb.get_model_dir()
            text = np.array([json.dumps(self.args)], dtype=object)
            return [pb.InferenceResponse([pb.Tensor("OUT", text)]) for _ in requests]
    """
    instance = loaded(source)
    instance.execute([request()], responder)
    (output,) = responder.only().outputs
    assert (output.datatype, output.shape) == ("BYTES", (1,))
    args = json.loads(output.array[0])
    assert args.pop("dir").endswith("/m/1")
    assert args.pop("model_repository").endswith("/m")
    config = json.loads(args.pop("model_config"))
    assert config["input"][0]["dims"] == [-1]
    assert config["parameters"] == {"ISOLATION": {"string_value": "thread"}}
    assert args == {
        "model_instance_kind": "CPU",
        "model_instance_name": "m_0",
        "model_instance_device_id": "0",
        "model_version": "1",
        "model_name": "m",
    }


def test_a_request_shows_all_it_carries(loaded: Any, responder: Any) -> None:
    source = """
    import json, numpy as np, triton_python_backend_utils as pb
    class TritonPythonModel:
        def execute(self, requests):
            r = requests[0]
            seen = [r.request_id(), r.correlation_id(), r.flags(), r.timeout(), json.loads(r.parameters()),
                    sorted(r.requested_output_names()), r.is_cancelled(), r.trace().get_context()]
            return [pb.InferenceResponse([pb.Tensor("OUT", np.array([json.dumps(seen)], object))])]
    """
    sent = request(id="x", sequence_id="s", sequence_start=True, sequence_end=True, timeout_us=9, parameters={"p": 1.5})
    responder.cancelled.add(0)
    loaded(source).execute([sent], responder)
    assert json.loads(responder.only().outputs[0].array[0]) == [
        "x", "s", 3, 9, {"p": 1.5}, ["OUT", "TWICE"], True, None,
    ]  # fmt: skip


def test_two_models_in_one_interpreter_do_not_meet(
    model_folder: Callable[[str], Any], host: Any, responder: Any
) -> None:
    others = set(sys.modules)
    instances = []
    for name in ("first", "second"):
        folder = model_folder(CONFIG.replace('"m"', f'"{name}"') + THREAD)
        (folder.version_dir / "helper.py").write_text(f"NAME = {name!r}")
        (folder.version_dir / "model.py").write_text(
            "import numpy as np, triton_python_backend_utils as pb\n"
            "from .helper import NAME\n"
            "class TritonPythonModel:\n"
            "    def execute(self, requests):\n"
            "        text = np.array([NAME + pb.get_model_dir()], dtype=object)\n"
            "        return [pb.InferenceResponse([pb.Tensor('OUT', text)])]\n"
        )
        instances.append((python.load(folder.spec(), host), folder))
    before = list(sys.path)
    for index, (instance, folder) in enumerate(instances):
        instance.execute([request()], responder)
        assert responder.of(0)[index].outputs[0].array[0] == f"{folder.config.name}{folder.version_dir}".encode()
    assert sys.path == before
    for instance, _ in instances:
        instance.close()
    assert not [name for name in sys.modules.keys() - others if name.startswith("_argosy_model_")]


def test_finalize_is_called_once_and_its_error_only_logged(model_folder: Callable[[str], Any], host: Any) -> None:
    folder = model_folder(CONFIG + THREAD)
    (folder.version_dir / "model.py").write_text(
        "class TritonPythonModel:\n    def finalize(self):\n        raise OSError('late')\n"
    )
    python.load(folder.spec(), host).close()
    assert [line for line in host.lines if "OSError: late" in line[1]] == [("info", host.lines[-1][1])]


def test_is_ready_is_the_models_own_opinion(loaded: Any) -> None:
    assert loaded(ECHO).is_ready()
    source = ECHO + "\n    async def is_ready(self):\n        return False\n"
    assert not loaded(source, CONFIG.replace('"m"', '"n"') + THREAD).is_ready()
    source = ECHO + "\n    def is_ready(self):\n        return 1\n"
    with pytest.raises(ServingError, match=r"is_ready\(\) must return a boolean value"):
        loaded(source, CONFIG.replace('"m"', '"o"') + THREAD).is_ready()
