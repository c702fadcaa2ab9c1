"""Ask the assistant over gRPC and print its answer as it comes.

    python client.py "What is the with statement?"
    python client.py --url localhost:8001 --max-tokens 20 --show-score "What does len do?"

A model that answers any number of times is asked with ModelStreamInfer; over HTTP there is `generate_stream`.
"""

import argparse
import codecs
import queue
from collections.abc import Iterator
from typing import Any

import numpy as np
import tritonclient.grpc as triton

MODEL = "assistant"


def make_inputs(prompt: str, max_tokens: int, streaming: bool) -> list[triton.InferInput]:
    """Return the ensemble's tensors, each with a batch of one: [1, 1]."""
    values = (
        ("prompt", "BYTES", np.array([[prompt.encode()]], dtype=np.object_)),
        ("max_tokens", "INT32", np.array([[max_tokens]], dtype=np.int32)),
        ("streaming", "BOOL", np.array([[streaming]], dtype=np.bool_)),
    )
    inputs = []
    for name, datatype, value in values:
        tensor = triton.InferInput(name, value.shape, datatype)
        tensor.set_data_from_numpy(value)
        inputs.append(tensor)
    return inputs


def ask(
    client: triton.InferenceServerClient,
    prompt: str,
    max_tokens: int = 48,
    streaming: bool = True,
    outputs: tuple[str, ...] = ("text",),
) -> Iterator[triton.InferResult]:
    """Yield every response to `prompt`, in order, with these outputs. Raises the server's errors."""
    replies: queue.Queue[Any] = queue.Queue()
    client.start_stream(lambda result, error: replies.put(error or result))
    try:
        client.async_stream_infer(
            MODEL,
            make_inputs(prompt, max_tokens, streaming),
            outputs=[triton.InferRequestedOutput(name) for name in outputs],
            enable_empty_final_response=True,
        )
        while True:
            reply = replies.get()
            if isinstance(reply, Exception):
                raise reply
            response = reply.get_response()
            if response.outputs:
                yield reply
            if response.parameters["triton_final_response"].bool_param:
                return
    finally:
        client.stop_stream()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("prompt")
    parser.add_argument("--url", default="localhost:8001", help="the server's gRPC address")
    parser.add_argument("--max-tokens", type=int, default=48)
    parser.add_argument("--whole", action="store_true", help="one answer, not a stream")
    parser.add_argument("--show-score", action="store_true", help="also the safety stage's score")
    args = parser.parse_args()
    outputs = ("text", "score") if args.show_score else ("text",)
    reply = None
    decoder = codecs.getincrementaldecoder("utf-8")()  # a character of several bytes may come in two pieces
    with triton.InferenceServerClient(args.url) as client:
        for reply in ask(client, args.prompt, args.max_tokens, not args.whole, outputs):
            print(decoder.decode(reply.as_numpy("text").item()), end="", flush=True)
    print()
    if args.show_score and reply is not None:
        print(f"safety score: {reply.as_numpy('score').item():.3f}")


if __name__ == "__main__":
    main()
