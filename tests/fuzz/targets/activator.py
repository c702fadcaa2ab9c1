"""What the activator reads of requests that it passes on, and the headers of traces."""

from collections.abc import Iterator

from google.protobuf.message import DecodeError
from tests.fuzz.seeds import grpc_messages, http_bytes, http_calls
from tests.fuzz.target import Target
from tritonclient.grpc import service_pb2 as pb

from argosy_agent.activator.grpc import messages as grpc_messages_of
from argosy_agent.activator.http import messages, openai, paths
from argosy_runtime.telemetry.tracing.spans import extract


def heads(data: bytes) -> None:
    """Parse a request's head, and what it asks for."""
    try:
        head = messages.parse_head(data)
        _, target = head.request
    except messages.HeadError as error:
        assert str(error)
        return
    assert head.closing().endswith(messages.END)
    paths.parse_target(target)
    openai.expects_continue(head)
    try:
        assert 0 <= openai.body_length(head) <= openai.BODY_LIMIT
    except openai.BodyError as error:
        assert openai.unreadable(error)


def _head_seeds() -> Iterator[bytes]:
    for call in http_calls():
        yield http_bytes(call).partition(messages.END)[0] + messages.END
    yield b"POST http://a/v1/chat/completions HTTP/1.1\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
    yield b"GET /v1/models/a%2Fb HTTP/1.1\r\n\r\n"


def bodies(data: bytes) -> None:
    """Read the model that a body of OpenAI's API names."""
    try:
        assert openai.model_of(data)
    except openai.BodyError as error:
        assert openai.unreadable(error)


def _body_seeds() -> Iterator[bytes]:
    yield b'{"model":"m","prompt":[1,2.5e3,"a\\u00e9",null,true]}'


def names(data: bytes) -> None:
    """Read the model that a message names, as protobuf reads it."""
    try:
        name = grpc_messages_of.model_of(data)
    except grpc_messages_of.MessageError as error:
        assert str(error)
        return
    try:
        expected = pb.ModelReadyRequest.FromString(data)
    except DecodeError:
        return
    assert name == expected.name


def _name_seeds() -> Iterator[bytes]:
    for _, message in grpc_messages():
        yield message.SerializeToString()


def traces(data: bytes) -> None:
    """Read the headers of a client's trace, each on a line."""
    parent, _, state = data.decode("latin-1").partition("\n")
    context = extract(parent, state)
    if context is not None:
        assert 0 < context.trace_id < 1 << 128


def _trace_seeds() -> Iterator[bytes]:
    yield b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\na=1,b@c=2"


TARGETS = [
    Target("activator-heads", heads, _head_seeds),
    Target("activator-bodies", bodies, _body_seeds),
    Target("activator-names", names, _name_seeds),
    Target("trace-headers", traces, _trace_seeds),
]
