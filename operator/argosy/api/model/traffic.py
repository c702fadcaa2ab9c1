"""What a language model's requests are like, which decides how it is best split."""

from pydantic import Field

from argosy.api.values.base import ApiModel, Int


class Traffic(ApiModel):
    """The mean request: how long its prompt and its answer are."""

    prompt_tokens: Int = Field(ge=1, le=2**31 - 1, description="Tokens of a request's prompt, on average.")
    output_tokens: Int = Field(ge=1, le=2**31 - 1, description="Tokens of its answer, on average.")

    @property
    def tokens(self) -> int:
        """Tokens of both."""
        return self.prompt_tokens + self.output_tokens
