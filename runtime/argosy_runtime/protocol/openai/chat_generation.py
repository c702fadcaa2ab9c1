"""One generation of a chat: the request to a model, the reader of its responses, and the form of the answer."""

from collections.abc import Callable
from dataclasses import dataclass

from argosy_runtime.language import ResponseReader
from argosy_runtime.messages import InferRequest

from .errors import ParameterNames
from .generation import LanguageModel, chat_inference
from .pipelines import Pipeline, PipelineReader, pipeline_inference
from .requests.chat import ChatRequest
from .responses.chat import ChatAnswer, ChatStream
from .responses.head import AnswerHead
from .responses.reader import Reader
from .tools.answers import ToolAnswer, ToolStream
from .tools.use import ToolUse, constrained, tool_use


@dataclass(frozen=True, slots=True)
class ChatGeneration:
    """A request of a chat on its way. `tools`: what the model may call, None for nothing."""

    request: ChatRequest
    inference: InferRequest
    reader: Reader
    tools: ToolUse | None

    @classmethod
    def begin(
        cls,
        model: LanguageModel | Pipeline,
        request: ChatRequest,
        request_id: str,
        names: Callable[[], ParameterNames],
    ) -> "ChatGeneration":
        """Return the generation of a model. Raises ApiError, by the request's `names`, for what it cannot do."""
        tools = tool_use(request)
        if isinstance(model, Pipeline):
            inference = pipeline_inference(model, request, request_id, names)
            return cls(request, inference, PipelineReader(model.tensors), tools)
        inference = chat_inference(model, constrained(request, tools), request_id)
        return cls(request, inference, ResponseReader(), tools)

    def answer(self, head: AnswerHead) -> ChatAnswer:
        """Return the chat completion as one object."""
        most = self.request.requested_logprobs
        if self.tools is None:
            return ChatAnswer(head, self.reader, most)
        return ToolAnswer(head, self.reader, self.tools, most)

    def events(self, head: AnswerHead) -> ChatStream:
        """Return the chat completion as events."""
        request = self.request
        options = (request.requested_logprobs, request.include_usage, request.obfuscates)
        if self.tools is None:
            return ChatStream(head, self.reader, *options)
        return ToolStream(head, self.reader, self.tools, *options)
