"""The rules between the fields of a request that generates text."""

from argosy_runtime.protocol.openai.errors import invalid

from .fields import GenerationFields, TextFormat


def check(request: GenerationFields) -> None:
    """Raise ApiError where fields contradict each other."""
    if request.stream_options is not None and not request.streams:
        raise invalid(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            "stream_options",
            "invalid_parameter_combination",
        )
    _check_tokens(request)
    outputs, response_format = request.structured_outputs, request.response_format
    if outputs is None:
        return
    if response_format is not None and not isinstance(response_format, TextFormat):
        message = "'structured_outputs' and 'response_format' both constrain the output: give one of them."
        raise invalid(message, "structured_outputs", "invalid_parameter_combination")
    if problem := outputs.problem():
        raise invalid(f"Invalid 'structured_outputs': {problem}.", "structured_outputs", "invalid_value")


def _check_tokens(request: GenerationFields) -> None:
    for name in request.logit_bias or ():
        if not (name.isascii() and name.isdigit()):
            message = f"Invalid key in 'logit_bias': {name!r} is not a token's number."
            raise invalid(message, "logit_bias", "invalid_value")
    if request.top_k == 0:
        request.top_k = None
    if request.stop is not None and "" in (request.stop if isinstance(request.stop, list) else [request.stop]):
        raise invalid("Invalid 'stop': an empty string is not a stop sequence.", "stop", "string_below_min_length")
