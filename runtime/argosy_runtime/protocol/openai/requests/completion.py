"""The body of a request to /v1/completions."""

from typing import Annotated

from msgspec import Meta
from msgspec.json import Decoder

from argosy_runtime.protocol.openai.errors import invalid
from argosy_runtime.protocol.openai.validation import decode as decode_fields
from argosy_runtime.tensors import Data

from .fields import MOST_LOGPROBS, GenerationFields, NotNegative
from .rules import check

_MOST_PROMPTS = 1024
_MOST_GENERATED = 1024
"""Choices to generate for all prompts of a request together."""
MOST_CANDIDATES = 20

TokenId = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Prompt = str | list[int]


class CompletionRequest(GenerationFields, kw_only=True):
    """A request to continue prompts."""

    prompt: str | Annotated[list[str | TokenId | list[TokenId]], Meta(min_length=1)] | None = None
    best_of: Annotated[int, Meta(ge=1, le=MOST_CANDIDATES)] | None = None
    echo: bool | None = None
    logprobs: Annotated[int, Meta(ge=0, le=MOST_LOGPROBS)] | None = None
    max_tokens: NotNegative | None = None
    suffix: str | None = None

    @property
    def candidates(self) -> int:
        """The number of choices to generate for each prompt, of which the best `n` are returned."""
        return max(self.n or 1, self.best_of or 1)

    def prompts(self) -> list[Prompt]:
        """Return the prompts, one or several, each as text or as tokens. Raises ApiError."""
        prompt = self.prompt
        if prompt is None:
            raise invalid("Missing required parameter: 'prompt'.", "prompt", "missing_required_parameter")
        if isinstance(prompt, str):
            return [prompt]
        texts = [item for item in prompt if isinstance(item, str)]
        tokens = [item for item in prompt if isinstance(item, int)]
        lists = [item for item in prompt if isinstance(item, list)]
        if len(tokens) == len(prompt):
            return [tokens]
        if len(prompt) not in (len(texts), len(lists)):
            message = (
                "Invalid type for 'prompt': an array holds strings alone, tokens alone, or arrays of tokens alone."
            )
            raise invalid(message, "prompt", "invalid_type")
        if len(prompt) > _MOST_PROMPTS:
            message = (
                f"Invalid 'prompt': array too long. Expected at most {_MOST_PROMPTS} prompts, but got {len(prompt)}."
            )
            raise invalid(message, "prompt", "array_above_max_length")
        self._check_choices(len(prompt))
        if empty := [at for at, item in enumerate(lists) if not item]:
            where = f"prompt[{empty[0]}]"
            raise invalid(f"Invalid '{where}': empty array. A prompt needs a token at least.", where, "empty_array")
        return [*texts, *lists]

    def _check_choices(self, prompts: int) -> None:
        if prompts * self.candidates <= _MOST_GENERATED:
            return
        name = "n" if self.candidates == self.n else "best_of"
        message = (
            f"Invalid '{name}': {self.candidates} choices for each of {prompts} prompts are too many. A request "
            f"generates at most {_MOST_GENERATED} choices: lower '{name}', or send the prompts in several requests."
        )
        raise invalid(message, name, "invalid_parameter_combination")


_DECODER = Decoder(CompletionRequest)


def decode(body: Data) -> CompletionRequest:
    """Return the request in a body. Raises ApiError."""
    request = decode_fields(_DECODER, body)
    check(request)
    if request.suffix:
        raise invalid(
            "'suffix' is not supported: no engine of this server inserts text.", "suffix", "unsupported_parameter"
        )
    if request.best_of is not None and request.best_of < (request.n or 1):
        raise invalid("Invalid 'best_of': it must be at least 'n'.", "best_of", "invalid_parameter_combination")
    if request.streams and request.candidates > (request.n or 1):
        message = "Results of 'best_of' cannot be streamed: leave it out, or do not stream."
        raise invalid(message, "best_of", "invalid_parameter_combination")
    return request
