"""Prompts of a fixed number of tokens, made of words whose tokens were counted.

Tokenizers split text at spaces first, so that a word after a space has the same tokens in every prompt. A word is used
only if the counts of two prompts confirm that.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

FIRST = "the"
"""The first word of every prompt: without a space before it, a word may have other tokens."""
WORDS = (
    *("a", "I", "it", "on", "we", "go", "sun", "map", "tree", "blue", "ship", "water", "green", "north", "stone"),
    *("table", "river", "paper", "light", "seven", "market", "window", "garden", "silver"),
)
_FEW, _MANY = 8, 16
_TRIES = 64


class PromptError(ValueError):
    """No prompts of the requested length can be made; the message says why and what to change."""


def samples() -> list[str]:
    """Return the prompts whose tokens are to be counted: two for each word."""
    return [_repeated(word, times) for word in WORDS for times in (_FEW, _MANY)]


def _repeated(word: str, times: int) -> str:
    return " ".join((FIRST, *(word for _ in range(times))))


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Tokens of each word after a space, and `overhead`: the tokens of the first word and what the endpoint adds."""

    overhead: int
    tokens: Mapping[str, int]

    @classmethod
    def of(cls, counts: Sequence[int]) -> "Vocabulary":
        """Return the vocabulary by the counts of `samples()`. Raises PromptError where they fit no word."""
        costs: dict[str, int] = {}
        overheads: dict[str, int] = {}
        for index, word in enumerate(WORDS):
            few, many = counts[2 * index], counts[2 * index + 1]
            cost, rest = divmod(many - few, _MANY - _FEW)
            if cost > 0 and rest == 0:
                costs[word], overheads[word] = cost, few - _FEW * cost
        if not costs:
            raise PromptError(
                "no word has the same number of tokens in every prompt: pass --tokenizer with the model's folder"
            )
        overhead, _ = Counter(overheads.values()).most_common(1)[0]
        return cls(overhead, {word: cost for word, cost in costs.items() if overheads[word] == overhead})

    def prompt(self, tokens: int, random: Random) -> str:
        """Return a random prompt of so many tokens. Raises PromptError where no words add up to them."""
        words = [FIRST]
        remaining = tokens - self.overhead
        choices, largest = list(self.tokens), max(self.tokens.values())
        while remaining > 2 * largest:
            words.append(random.choice(choices))
            remaining -= self.tokens[words[-1]]
        return " ".join((*words, *self._exactly(remaining, tokens, random)))

    def _exactly(self, remaining: int, tokens: int, random: Random) -> list[str]:
        """Return random words of exactly `remaining` tokens."""
        for _ in range(_TRIES):
            words: list[str] = []
            left = remaining
            while fitting := [word for word, cost in self.tokens.items() if cost <= left]:
                words.append(random.choice(fitting))
                left -= self.tokens[words[-1]]
            if left == 0:
                return words
        raise PromptError(
            f"no prompt of {tokens} tokens can be made: the endpoint adds {self.overhead}, and words have "
            f"{sorted(set(self.tokens.values()))}; change --prompt-tokens"
        )
