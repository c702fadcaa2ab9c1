"""The mean request of a language model, on which the best parallelism depends."""

from pydantic import Field

from argosy.api.values.base import ApiModel, Int


class Traffic(ApiModel):
    """The mean lengths of prompts and answers."""

    prompt_tokens: Int = Field(ge=1, le=2**31 - 1, description="Tokens of a request's prompt, on average.")
    output_tokens: Int = Field(ge=1, le=2**31 - 1, description="Tokens of its answer, on average.")

    @property
    def tokens(self) -> int:
        """Tokens of prompt and answer."""
        return self.prompt_tokens + self.output_tokens
