"""What a Python model finds in `triton_python_backend_utils`: statements that the model `probe` runs."""

from typing import Any

from tests.differential.http_calls import Call, Case, infer, tensor


def probe(code: str, **rest: Any) -> Call:
    """Return the call that runs these statements."""
    return infer("probe", tensor("CODE", [1], "BYTES", [code]), outputs=[{"name": "RESULT"}], **rest)


def kind(expression: str) -> str:
    """Return statements whose result is the type of the exception that an expression raises, "" for none."""
    return f"result = ''\ntry:\n    {expression}\nexcept Exception as error:\n    result = type(error).__name__"


FAMILY = "family = pb_utils.MetricFamily('probe_{0}', 'd', pb_utils.MetricFamily.{0})\n"
COUNTER = FAMILY.format("COUNTER") + "metric = family.Metric(labels={'case': '%s'})\n"
GAUGE = FAMILY.format("GAUGE") + "metric = family.Metric(labels={'case': '%s'})\n"
HISTOGRAM = FAMILY.format("HISTOGRAM") + "metric = family.Metric(labels={'case': '%s'}, buckets=[1, 2.5])\n"
NAMES = (
    "Tensor InferenceRequest InferenceResponse TritonError "
    "TritonModelException PreferredMemory TRITONSERVER_MEMORY_CPU TRITONSERVER_MEMORY_GPU Logger "
    "MetricFamily ModelConfig load_model unload_model is_model_ready get_input_tensor_by_name "
    "get_output_tensor_by_name get_input_config_by_name get_output_config_by_name triton_to_numpy_type "
    "using_decoupled_model_transaction_policy numpy_to_triton_type triton_string_to_numpy serialize_byte_tensor "
    "deserialize_bytes_tensor TRITON_STRING_TO_NUMPY TRITONSERVER_REQUEST_FLAG_SEQUENCE_START "
    "TRITONSERVER_REQUEST_FLAG_SEQUENCE_END TRITONSERVER_RESPONSE_COMPLETE_FINAL TRITONSERVER_REQUEST_RELEASE_ALL "
    "TRITONSERVER_REQUEST_RELEASE_RESCHEDULE"
)
CALL = "call = pb_utils.InferenceRequest(model_name='%s', inputs=[%s], requested_output_names=['%s'])\n"
FLOATS = "pb_utils.Tensor('INPUT0', np.array([[1, 2]], np.float32))"
REPEAT = CALL % ("repeat", "pb_utils.Tensor('IN', np.array({0}, np.int32))", "OUT")
SEEN = "[[int(t.as_numpy()[0]) for t in r.output_tensors()] for r in {0}]"
ERROR = "result = [{0}.has_error(), {0}.error().message()]"

PROBES = {
    "names": f"result = [name for name in {NAMES.split()} if not hasattr(pb_utils, name)]",
    "arguments": "result = {k: v for k, v in model.arguments.items() if k not in ('model_config', 'model_repository')}",
    "flags": "result = [int(getattr(pb_utils, name)) for name in dir(pb_utils) if name.startswith('TRITONSERVER_RE')]",
    "memory": "result = [int(pb_utils.TRITONSERVER_MEMORY_CPU), int(pb_utils.TRITONSERVER_MEMORY_GPU)]",
    "types": "result = [t.__name__ if t else None for t in map(pb_utils.triton_to_numpy_type, range(2, 14))]",
    "numbers": "result = [pb_utils.numpy_to_triton_type(np.dtype(t).type) for t in '?bBhHiIlLefdSO']",
    "no number": "result = pb_utils.numpy_to_triton_type(np.complex64)",
    "strings": "result = [pb_utils.triton_string_to_numpy('TYPE_' + t).__name__ for t in ('BOOL', 'FP16', 'STRING')]",
    "no string": "pb_utils.triton_string_to_numpy('TYPE_NONE')",
    "serialize": "result = list(pb_utils.serialize_byte_tensor(np.array([b'a', 'é', 7], object)))",
    "serialize none": "result = pb_utils.serialize_byte_tensor(np.array([], object))",
    "serialize numbers": "result = pb_utils.serialize_byte_tensor(np.array([1]))",
    "deserialize": "result = [s.decode() for s in pb_utils.deserialize_bytes_tensor(b'\\x01\\0\\0\\0a\\0\\0\\0\\0')]",
    "deserialize cut": kind("pb_utils.deserialize_bytes_tensor(b'\\x09\\0\\0\\0a')"),
    "configuration by name": (
        "c = json.loads(model.arguments['model_config'])\n"
        "i, o = pb_utils.get_input_config_by_name, pb_utils.get_output_config_by_name\n"
        "d = pb_utils.using_decoupled_model_transaction_policy\n"
        "result = [i(c, 'CODE')['dims'], i(c, 'X'), o(c, 'RESULT')['data_type'], o({}, 'X'), d(c), d({})]"
    ),
    "tensor": (
        "t = pb_utils.Tensor('x', np.arange(6, dtype=np.int16).reshape(3, 2).T)\n"
        "result = [t.name(), list(t.shape()), t.is_cpu(), t.as_numpy().tolist()]"
    ),
    "tensor of fixed bytes": kind("pb_utils.Tensor('x', np.array([b'a', 'b']))"),
    "tensor of text": (
        "t = pb_utils.Tensor('x', np.array([b'a', 'b'], object))\n"
        "result = [list(t.shape()), [type(word).__name__ for word in t.as_numpy()]]"
    ),
    "tensor of a list": kind("pb_utils.Tensor('x', [1, 2])"),
    "tensor of a number": kind("pb_utils.Tensor('x', np.float32(1))"),
    "tensor of nothing": kind("pb_utils.Tensor('x', None)"),
    "tensor without a name": "pb_utils.Tensor('', np.zeros(1))",
    "tensor of another type": kind("pb_utils.Tensor('x', np.zeros(1, np.complex64))"),
    "error": (
        "e = pb_utils.TritonError('m', code=pb_utils.TritonError.CANCELLED)\n"
        "result = [e.message(), int(e.code()), int(pb_utils.TritonError('m').code())]"
    ),
    "error codes": (
        "names = 'UNKNOWN INTERNAL NOT_FOUND INVALID_ARG UNAVAILABLE UNSUPPORTED ALREADY_EXISTS CANCELLED'.split()\n"
        "result = [int(getattr(pb_utils.TritonError, name)) for name in names]"
    ),
    "error of a wrong code": kind("pb_utils.TritonError('m', 'x')"),
    "error without a message": kind("pb_utils.TritonError(None)"),
    "response": (
        "r = pb_utils.InferenceResponse([pb_utils.Tensor('x', np.zeros(1))])\n"
        "result = [r.has_error(), r.error(), [t.name() for t in r.output_tensors()],\n"
        "    pb_utils.get_output_tensor_by_name(r, 'x').name(), pb_utils.get_output_tensor_by_name(r, 'y')]"
    ),
    "response with an error": (
        "r = pb_utils.InferenceResponse(output_tensors=[], error=pb_utils.TritonError('m'))\n"
        "result = [r.has_error(), r.error().message(), len(r.output_tensors())]"
    ),
    "response with text for an error": kind("pb_utils.InferenceResponse(error='m')"),
    "response without a tensor": "pb_utils.InferenceResponse([None])",
    "response of something": kind("pb_utils.InferenceResponse([5])"),
    "sender with another flag": "request.get_response_sender().send(None, 2)",
    "sender without a response": "request.get_response_sender().send()",
    "sender with the final flag first": "request.get_response_sender().send(flags=1)",
    "sender of something": kind("request.get_response_sender().send(5)"),
    "sender with text for a flag": kind("request.get_response_sender().send(None, '1')"),
    "sender with a negative flag": kind("request.get_response_sender().send(None, -1)"),
    "sender with a fraction for a flag": kind("request.get_response_sender().send(None, 1.0)"),
    "release flags of text": kind("request.set_release_flags('x')"),
    "constants as text": (
        "result = [str(pb_utils.TRITONSERVER_MEMORY_CPU), str(pb_utils.Logger.INFO),\n"
        "    f'{pb_utils.Logger.LogLevel.ERROR}', str(pb_utils.MetricFamily.GAUGE)]"
    ),
    "log of a number for a level": kind("pb_utils.Logger.log('a', 1)"),
    "log of no level": kind("pb_utils.Logger.log('a', None)"),
    "log of nothing": kind("pb_utils.Logger.log_info(None)"),
    "error of a number for a code": kind("pb_utils.TritonError('m', 3)"),
    "response of nothing": kind("pb_utils.InferenceResponse(output_tensors=None)"),
    "response of text": kind("pb_utils.InferenceResponse('x')"),
    "request made of nothing": kind("pb_utils.InferenceRequest()"),
    "request without inputs": kind("pb_utils.InferenceRequest(model_name='m', requested_output_names=[])"),
    "request without outputs": kind("pb_utils.InferenceRequest(model_name='m', inputs=[])"),
    "request without a model": kind("pb_utils.InferenceRequest(inputs=[], requested_output_names=[])"),
    "request of no inputs": kind("pb_utils.InferenceRequest(model_name='m', inputs=None, requested_output_names=[])"),
    "request with text for parameters": kind(
        "pb_utils.InferenceRequest(model_name='m', inputs=[], requested_output_names=[], parameters='x')"
    ),
    "cancelled": "result = [request.is_cancelled(), request.get_response_sender().is_cancelled()]",
    "trace": "result = request.trace().get_context()",
    "request made": (
        CALL
        % ("m", FLOATS, "b")
        + "result = [call.request_id(), call.correlation_id(), call.flags(), call.timeout(), call.parameters(),\n"
        "    sorted(call.requested_output_names()), [t.name() for t in call.inputs()]]"
    ),
    "request made of all": (
        "call = pb_utils.InferenceRequest(request_id='r', correlation_id='c', inputs=[], model_name='m',\n"
        "    requested_output_names=['a', 'b', 'a'], model_version=3, flags=1, timeout=9,\n"
        "    preferred_memory=pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_CPU, 0),\n"
        "    trace=request.trace(), parameters={'a': 1, 'b': 'x', 'c': True})\n"
        "call.set_flags(3)\n"
        "result = [call.request_id(), call.correlation_id(), call.flags(), call.timeout(), call.parameters(),\n"
        "    sorted(call.requested_output_names())]"
    ),
    "request with another correlation": kind(
        "pb_utils.InferenceRequest(model_name='m', inputs=[], requested_output_names=[], correlation_id=1.5)"
    ),
    "request without a tensor": (
        "pb_utils.InferenceRequest(request_id='r', model_name='m', inputs=[None], requested_output_names=['a'])"
    ),
    "request of an unnamed output": (
        "pb_utils.InferenceRequest(request_id='r', model_name='m', inputs=[], requested_output_names=[''])"
    ),
    "request with a list for a parameter": (
        "pb_utils.InferenceRequest(model_name='m', inputs=[], requested_output_names=[], parameters={'a': [1]})"
    ),
    "request with a number for a key": (
        "pb_utils.InferenceRequest(model_name='m', inputs=[], requested_output_names=[], parameters={1: 1})"
    ),
    "request with a float for a parameter": (
        "pb_utils.InferenceRequest(model_name='m', inputs=[], requested_output_names=[], parameters={'a': 1.5})"
    ),
    "outputs are a": "result = type(request.requested_output_names()).__name__",
    "call": (
        CALL % ("identity", FLOATS, "OUTPUT0") + "answer = call.exec()\n"
        "result = [answer.has_error(), [[t.name(), t.as_numpy().tolist()] for t in answer.output_tensors()]]"
    ),
    "call with an input twice": CALL % ("identity", FLOATS + ", " + FLOATS, "OUTPUT0")
    + "answer = call.exec()\n"
    + ERROR.format("answer"),
    "call of a version": (
        CALL.replace("model_name='%s'", "model_name='%s', model_version=1")
        % ("versioned", "pb_utils.Tensor('IN', np.array([1], np.float32))", "VERSION")
        + "answer = call.exec()\n"
        "result = [answer.has_error(), [[s.decode() for s in t.as_numpy()] for t in answer.output_tensors()]]"
    ),
    "call of no version": (
        CALL.replace("model_name='%s'", "model_name='%s', model_version=99")
        % ("versioned", "pb_utils.Tensor('IN', np.array([1], np.float32))", "OUT")
        + "answer = call.exec()\n"
        + ERROR.format("answer")
    ),
    "call of no model": CALL % ("nope", FLOATS, "OUT") + "answer = call.exec()\n" + ERROR.format("answer"),
    "call with another input": (
        CALL % ("identity", FLOATS.replace("INPUT0", "X"), "OUTPUT0")
        + "answer = call.exec()\n"
        + ERROR.format("answer")
    ),
    "call of another type": (
        CALL % ("identity", FLOATS.replace("float32", "int8"), "OUTPUT0")
        + "answer = call.exec()\n"
        + ERROR.format("answer")
    ),
    "call of a decoupled model": (REPEAT.format("[1]") + "answer = call.exec()\n" + ERROR.format("answer")),
    "stream": REPEAT.format("[4, 5, 6]") + "result = " + SEEN.format("call.exec(decoupled=True)"),
    "stream of nothing": REPEAT.format("[]") + "result = " + SEEN.format("call.exec(decoupled=True)"),
    "stream twice": (
        REPEAT.format("[4, 5]")
        + "stream = call.exec(decoupled=True)\n"
        + f"result = [{SEEN.format('stream')}, {SEEN.format('stream')}]"
    ),
    "stream by hand": (
        REPEAT.format("[4, 5]") + "stream = call.exec(decoupled=True)\n"
        f"result = [int(next(stream).output_tensors()[0].as_numpy()[0]), {SEEN.format('stream')}]\n"
        "try:\n    next(stream)\nexcept StopIteration as end:\n    result.append('end')"
    ),
    "stream of a plain model": (
        CALL % ("identity", FLOATS, "OUTPUT0")
        + "result = [[t.as_numpy().tolist() for t in r.output_tensors()] for r in call.exec(decoupled=True)]"
    ),
    "stream of no model": (
        CALL % ("nope", FLOATS, "OUT")
        + "result = [[r.has_error(), r.error().message()] for r in call.exec(decoupled=True)]"
    ),
    "call that fails": (
        CALL % ("failing", "pb_utils.Tensor('HOW', np.array([b'NOT_FOUND'], object))", "OUT")
        + "answer = call.exec()\n"
        + ERROR.format("answer")
    ),
    "call without a loop": kind(
        "pb_utils.InferenceRequest(model_name='m', inputs=[], requested_output_names=[]).async_exec()"
    ),
    "ready": (
        "result = [pb_utils.is_model_ready(model_name='identity'), pb_utils.is_model_ready('identity', '1'),\n"
        "    pb_utils.is_model_ready('identity', '9'), pb_utils.is_model_ready('nope')]"
    ),
    "log": (
        "pb_utils.Logger.log('m'); pb_utils.Logger.log('m', pb_utils.Logger.WARNING)\n"
        "pb_utils.Logger.log_info('m'); pb_utils.Logger.log_warn('m'); pb_utils.Logger.log_error('m')\n"
        "pb_utils.Logger.log_verbose('m')"
    ),
    "counter": COUNTER % 1 + "metric.increment(1.5); metric.increment(0); result = metric.value()",
    "gauge": GAUGE % 1 + "metric.set(5); metric.increment(-7); result = metric.value()",
    "histogram": HISTOGRAM % 1 + "metric.observe(2); metric.observe(99)",
    "metric twice": COUNTER % 5 + "metric.increment(2); result = family.Metric(labels={'case': '5'}).value()",
    "release flags": (
        "request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)\n"
        "request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_ALL)"
    ),
    "dlpack": (
        "t = pb_utils.Tensor('x', np.arange(3, dtype=np.float32))\n"
        "result = [list(map(int, t.__dlpack_device__())), type(t.to_dlpack()).__name__]"
    ),
    "dlpack capsule": (
        "t = pb_utils.Tensor('x', np.arange(3, dtype=np.int64))\n"
        "result = pb_utils.Tensor.from_dlpack('y', t.to_dlpack()).as_numpy().tolist()"
    ),
    "dlpack of strings": "pb_utils.Tensor('x', np.array([b'a'], object)).to_dlpack()",
    "dlpack of something": "pb_utils.Tensor.from_dlpack('x', 5)",
    "dlpack without a name": "pb_utils.Tensor.from_dlpack('', np.zeros(1))",
}
RAISING = {
    "ready of a wrong version": "pb_utils.is_model_ready('identity', 'x')",
    "load of no model": "pb_utils.load_model(model_name='nope')",
    "load with files that are no dictionary": "pb_utils.load_model('nope', files=[1])",
    "unload of no model": "pb_utils.unload_model('nope')",
    "counter falls": COUNTER % 2 + "metric.increment(-1)",
    "counter set": COUNTER % 3 + "metric.set(1)",
    "counter observe": COUNTER % 4 + "metric.observe(1)",
    "gauge observe": GAUGE % 2 + "metric.observe(1)",
    "histogram value": HISTOGRAM % 2 + "metric.value()",
    "histogram increment": HISTOGRAM % 3 + "metric.increment(1)",
    "histogram set": HISTOGRAM % 4 + "metric.set(1)",
    "histogram without buckets": FAMILY.format("HISTOGRAM") + "family.Metric(labels={'case': '5'})",
    "histogram with a tuple": FAMILY.format("HISTOGRAM") + "family.Metric(labels={'case': '6'}, buckets=(1, 2))",
    "histogram of falling buckets": (
        FAMILY.format("HISTOGRAM") + kind("family.Metric(labels={'case': '7'}, buckets=[2, 1])")
    ),
    "gauge with buckets": FAMILY.format("GAUGE") + "family.Metric(labels={'case': '3'}, buckets=[1])",
    "labels of numbers": FAMILY.format("GAUGE") + "family.Metric(labels={'case': 4}).value()",
    "labels of a list": FAMILY.format("GAUGE") + "family.Metric(labels=['case'])",
    "family of another kind": FAMILY.format("COUNTER")
    + "pb_utils.MetricFamily('probe_COUNTER', 'd', pb_utils.MetricFamily.GAUGE)",
    "family of a wrong kind": kind("pb_utils.MetricFamily('x', 'd', 'counter')"),
}
"""Calls that fail in the server. At times they end tritonserver 2.51 (`boost::interprocess::lock_exception`): the model
frees the message of the answer while the server still holds its mutex."""
CONFIG = (
    "described = {'name': 'm', 'max_batch_size': 4, 'input': [{'name': 'I', 'data_type': 'TYPE_FP32', 'dims': [2],\n"
    "    'optional': False}], 'output': [{'name': 'O', 'data_type': 'TYPE_FP32', 'dims': [2]}]}\n"
    "%sc = pb_utils.ModelConfig(json.dumps(described))\nc.%s\nresult = c.as_dict()"
)
CHANGES = {
    "a larger batch": "set_max_batch_size(8)",
    "a smaller batch": "set_max_batch_size(2)",
    "no batch": "set_max_batch_size(0)",
    "batching": "set_dynamic_batching()",
    "the same input": "add_input({'name': 'I', 'data_type': 'TYPE_FP32', 'dims': [2]})",
    "an input more": "add_input({'name': 'X', 'data_type': 'TYPE_INT8', 'dims': [-1, 3]})",
    "an optional input": "add_input({'name': 'X', 'data_type': 'TYPE_INT8', 'dims': [1], 'optional': True})",
    "an input of another type": "add_input({'name': 'I', 'data_type': 'TYPE_INT8', 'dims': [2]})",
    "an input of other dims": "add_input({'name': 'I', 'data_type': 'TYPE_FP32', 'dims': [3]})",
    "an input that is optional now": (
        "add_input({'name': 'I', 'data_type': 'TYPE_FP32', 'dims': [2], 'optional': True})"
    ),
    "an input without a name": "add_input({'data_type': 'TYPE_FP32', 'dims': [2]})",
    "an input without a type": "add_input({'name': 'X', 'dims': [2]})",
    "an input without dims": "add_input({'name': 'X', 'data_type': 'TYPE_FP32'})",
    "an input with a label": "add_input({'name': 'X', 'data_type': 'TYPE_FP32', 'dims': [2], 'label': 1})",
    "the same output": "add_output({'name': 'O', 'data_type': 'TYPE_FP32', 'dims': [2]})",
    "an output more": "add_output({'name': 'X', 'data_type': 'TYPE_INT8', 'dims': [-1]})",
    "an output of another type": "add_output({'name': 'O', 'data_type': 'TYPE_INT8', 'dims': [2]})",
    "an output of other dims": "add_output({'name': 'O', 'data_type': 'TYPE_FP32', 'dims': [3]})",
    "an output without a name": "add_output({'data_type': 'TYPE_FP32', 'dims': [2]})",
    "an output without a type": "add_output({'name': 'X', 'dims': [2]})",
    "an output without dims": "add_output({'name': 'X', 'data_type': 'TYPE_FP32'})",
    "an optional output": "add_output({'name': 'X', 'data_type': 'TYPE_FP32', 'dims': [2], 'optional': True})",
    "a decoupled policy": "set_model_transaction_policy({'decoupled': True})",
    "an empty policy": "set_model_transaction_policy({})",
    "another policy": "set_model_transaction_policy({'other': True})",
}
PRESENT = {
    "batching over sequences": ("described['sequence_batching'] = {}\n", "set_dynamic_batching()"),
    "batching over an ensemble": ("described['ensemble_scheduling'] = {}\n", "set_dynamic_batching()"),
    "batching again": ("described['dynamic_batching'] = {'preserve_ordering': True}\n", "set_dynamic_batching()"),
    "a policy against another": (
        "described['model_transaction_policy'] = {'decoupled': False}\n",
        "set_model_transaction_policy({'decoupled': True})",
    ),
    "an input that has no dims": (
        "described['input'][0].update(dims=[], data_type='TYPE_INVALID')\n",
        "add_input({'name': 'I', 'data_type': 'TYPE_INT8', 'dims': [7]})",
    ),
}
FACTS = (
    "result = [request.request_id(), request.correlation_id(), request.flags(), request.timeout(),\n"
    "    json.loads(request.parameters())]"
)

CASES = [
    *(Case(f"probe: {name}", (probe(code),)) for name, code in PROBES.items()),
    *(Case(f"configure: {name}", (probe(CONFIG % ("", change)),)) for name, change in CHANGES.items()),
    *(Case(f"configure: {name}", (probe(CONFIG % present),)) for name, present in PRESENT.items()),
    Case("probe: facts", (probe(FACTS, id="me", parameters={"a": 1, "b": "x", "c": True, "timeout": 1000000}),)),
    Case("probe: sequence", (probe(FACTS, parameters={"sequence_id": 7, "sequence_start": True}),)),
    Case("probe: sequence of text", (probe(FACTS, parameters={"sequence_id": "s", "sequence_end": True}),)),
]
RAISING_CASES = [Case(f"probe: {name}", (probe(code),)) for name, code in RAISING.items()]
