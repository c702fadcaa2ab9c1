"""The generate extension: plain JSON in, plain JSON or server-sent events out."""

from typing import Any

from argosy_runtime.errors import ServingError, internal, invalid
from argosy_runtime.messages import Array, InferRequest, InferResponse, Tensor
from argosy_runtime.protocol.http.request import DEFAULT_MAX_INPUT_SIZE, too_long
from argosy_runtime.protocol.http.response import encode_error, parameters_finite
from argosy_runtime.protocol.json import data as json_data
from argosy_runtime.protocol.json.parameters import custom
from argosy_runtime.protocol.json.text import doubled_keys, dumps, loads, typed
from argosy_runtime.tensors import Data

from .model_view import ModelView, TensorView
from .tensors import InputBytes

NOT_ONE_RESPONSE = (
    "generate expects model to produce exactly 1 response, use generate stream for model that generates "
    "various "
    "number of responses"
)


def decode(
    body: Data, model_name: str, model_version: str, model: ModelView, limit: int = DEFAULT_MAX_INPUT_SIZE
) -> InferRequest:
    """Decode a body: keys that name inputs become tensors, the others parameters; `parameters` nests both one level.

    `outputs` with a list, which Triton refuses as a parameter, names the requested outputs. A key with the value null
    is ignored, because clients write it for what they do not set.
    """
    if len(body) > limit:
        raise invalid(too_long(len(body), limit))
    document = loads(body)
    if type(document) is not dict:
        raise internal("attempt to get members for non-object")
    doubled = doubled_keys(body, document)
    request = InferRequest(model_name, {}, model_version)
    if document.get("id") is not None:
        request.id = typed(document["id"], str, "Unable to parse 'id'")
    reader = _Reader(request, model, limit, doubled)
    for key, value in document.items():
        if value is None:
            continue
        if key == "parameters":
            reader.nested(value)
        elif key == "outputs" and type(value) is list and key not in model.inputs:
            request.requested_outputs = _names(value)
        else:
            reader.take(key, value)
    reader.check()
    return request


def _names(outputs: list[Any]) -> tuple[str, ...]:
    if not outputs:
        raise invalid("'outputs' names none; name outputs of the model, or leave it out for all of them")
    for name in outputs:
        if type(name) is not str:
            raise invalid(f"'outputs' is a list of names, and {name!r} is none")
    return tuple(dict.fromkeys(outputs))


class _Reader:
    """Sorts the keys of one request into inputs and parameters, and adds up their size."""

    __slots__ = ("_doubled", "_limit", "_model", "_request", "_size", "_strings")

    def __init__(self, request: InferRequest, model: ModelView, limit: int, doubled: frozenset[str]) -> None:
        self._doubled = doubled
        self._request = request
        self._model = model
        self._limit = limit
        self._size = 0
        self._strings = InputBytes(request.model_name, request.log_prefix)

    def nested(self, value: Any) -> None:
        if "parameters" in self._model.inputs:
            raise invalid("Keyword 'parameters' for nested schema also given as input tensor name")
        for key, inner in typed(value, dict, "Expected JSON object for keyword: 'parameters'").items():
            if inner is None:
                continue
            try:
                self.take(key, inner)
            except ServingError as error:
                message = f"Converting keyword: 'parameters': {error.message}"
                raise ServingError(error.kind, message, error.reason) from None

    def take(self, key: str, value: Any) -> None:
        declared = self._model.inputs.get(key)
        if declared is None:
            self._request.parameters[key] = custom(key, value)
        else:
            tensor = Tensor(key, declared.datatype, self._array(key, declared, value))
            if key in self._request.inputs or key in self._doubled:
                raise invalid(f"{self._request.log_prefix}input '{key}' already exists in request")
            self._request.inputs[key] = tensor

    def check(self) -> None:
        """Raise FaultyInputsError if an input has a wrong number of strings."""
        self._strings.check(self._request)

    def _array(self, name: str, declared: TensorView, value: Any) -> Array:
        data = value if type(value) is list else [value]
        self._count(name, json_data.size(data, declared.datatype))
        shape = _fit(name, declared.shape, len(data))
        return json_data.read(data, name, declared.datatype, shape, self._strings, self._limit)

    def _count(self, name: str, size: int) -> None:
        """Add the bytes of an input to those before it. Raises INVALID_ARG where they are too many."""
        before = self._size
        self._size += size
        if self._size > self._limit:
            raise invalid(
                f"request size of {before} bytes with input '{name}' of size {size} bytes exceeds the maximum allowed "
                f"input size of {self._limit}. Use --http-max-input-size to increase the limit."
            )


def _fit(name: str, declared: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Return a shape for `count` elements: fixed dimensions first, then the innermost -1 takes the rest, others are
    1.
    """
    rest = count
    for dim in declared:
        if dim != -1:
            if dim == 0 or rest % dim:
                raise _misfit(name)
            rest //= dim
    shape = list(declared)
    for axis in reversed(range(len(shape))):
        if shape[axis] == -1:
            shape[axis], rest = rest, 1
    if rest != 1:
        raise _misfit(name)
    return tuple(shape)


def _misfit(name: str) -> ServingError:
    return invalid(f"The schema can not convert input '{name}' to tensor with proper shape")


def encode(response: InferResponse, without: frozenset[str] = frozenset()) -> bytes:
    """Return a response as one JSON object, its keys sorted: outputs, parameters, id, model_name and model_version.

    An output of one element stands without its list; those named in `without` are left out.
    """
    fields: dict[str, Any] = {
        output.name: output for output in reversed(response.outputs) if output.name not in without
    }
    fields.update(response.parameters)
    fields["model_name"] = response.model_name
    fields["model_version"] = response.model_version
    if response.id:
        fields["id"] = response.id
    finite = parameters_finite(response)
    for name, value in fields.items():
        if isinstance(value, Tensor):
            data, all_finite = json_data.write(value)
            finite = finite and all_finite
            fields[name] = data[0] if len(data) == 1 else data
    return dumps(dict(sorted(fields.items())), finite)


def event(payload: bytes) -> bytes:
    """Return one server-sent event."""
    return b"data: " + payload + b"\n\n"


def encode_event(response: InferResponse) -> bytes:
    """Return a response, or its error, as one server-sent event; b"" where it has no new output.

    Outputs that were made once for the request are in its first event alone.
    """
    if response.error is not None:
        return event(encode_error(response.error.message))
    if response.repeated and all(tensor.name in response.repeated for tensor in response.outputs):
        return b""
    return event(encode(response, without=response.repeated))
