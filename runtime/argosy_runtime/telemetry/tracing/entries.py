"""Records as the entries of Triton's trace files."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from argosy_runtime.tensors import Tensor
from argosy_runtime.tensors.strings import split_strings
from argosy_runtime.traces import Trace, TracedTensor, TraceRecord

_BINARY: Final = ("FP16", "BF16")
_PLAIN: Final = str.maketrans({chr(code): f"\\u{code:04x}" for code in range(32)} | {'"': '\\"', "\\": "\\\\"})


def entries(record: TraceRecord) -> str:
    """Return the JSON objects of a record, with commas between: by model, the last that began comes first."""
    return ",".join([text for trace in reversed(record.traces) for text in _of_model(trace)])


def _of_model(trace: Trace) -> Iterator[str]:
    for activity in trace.activities:
        if isinstance(activity, TracedTensor):
            yield _tensor_entry(trace.id, activity)
            continue
        name, ns = activity
        if name == "REQUEST_START":
            yield _head(trace)
        yield f'{{"id":{trace.id},"timestamps":[{{"name":"{name}","ns":{ns}}}]}}'


def _head(trace: Trace) -> str:
    request = f',"request_id":"{_quoted(trace.request_id)}"' if trace.request_id else ""
    parent = f',"parent_id":{trace.parent_id}' if trace.parent_id else ""
    model = f'"model_name":"{_quoted(trace.model_name)}","model_version":{trace.model_version or -1}'
    return f'{{"id":{trace.id},{model}{request}{parent}}}'


def _tensor_entry(trace_id: int, traced: TracedTensor) -> str:
    tensor = traced.tensor
    head = f'{{"id":{trace_id},"activity":"{traced.activity}","tensor":{{"name":"{_quoted(tensor.name)}"'
    shape = ",".join(map(str, tensor.shape))
    return f'{head},"data":"{",".join(_elements(tensor))}","shape":"{shape}","dtype":"{tensor.datatype}"}}}}'


def _elements(tensor: Tensor) -> Sequence[str]:
    """Return the elements as text within a JSON string."""
    if tensor.datatype in _BINARY:
        return ()
    if tensor.datatype == "BYTES":
        strings = [element.decode("utf-8", "replace") for element in split_strings(tensor.data)]
        return [_quoted(f'"{string}"') for string in strings]
    if tensor.datatype == "BOOL":
        return ["1" if value else "0" for value in tensor.array.ravel().tolist()]
    values = tensor.array.ravel().tolist()
    if np.issubdtype(tensor.array.dtype, np.floating):
        return [f"{value:g}" for value in values]
    return [str(value) for value in values]


def _quoted(text: str) -> str:
    return text.translate(_PLAIN)
