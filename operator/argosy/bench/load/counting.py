"""The vocabulary of prompts: words counted by a tokenizer's folder, or by an endpoint's usage."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from random import Random

from argosy.bench.load.client import Client, EndpointError
from argosy.bench.prompts import FIRST, PromptError, Vocabulary, samples
from argosy.bench.work import Api, Work

_CHECKS = 3
"""Composed prompts that the endpoint counts before the load: they must have the tokens that were computed."""


def tokenizer_errors(folder: Path) -> list[str]:
    """Return the reasons why a folder's tokenizer cannot count."""
    if not (folder / "tokenizer.json").is_file():
        return [f"--tokenizer {folder}: there is no tokenizer.json in it"]
    if find_spec("tokenizers") is None:
        return ["--tokenizer needs the package tokenizers, which is not installed: pip install tokenizers"]
    return []


def tokenizer_counter(folder: Path) -> Callable[[str], int]:
    """Return a function that counts a text's tokens by the `tokenizer.json` of a folder."""
    # Imported here: it is not among what the operator needs.
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    return lambda text: len(tokenizer.encode(text).ids)


async def vocabulary(client: Client, work: Work, counter: Callable[[str], int] | None) -> Vocabulary:
    """Return the vocabulary for the work's prompts, checked by the endpoint's usage. Raises EndpointError."""
    try:
        if counter is None:
            counts = [await client.count(work.api, text) for text in samples()]
            words = Vocabulary.of(counts)
        else:
            words = Vocabulary.of([counter(text) for text in samples()])
            words = await _with_overhead(client, work.api, words, counter)
        random = Random(_CHECKS)
        for _ in range(_CHECKS):
            tokens = await client.count(work.api, words.prompt(work.prompt_tokens, random))
            if tokens != work.prompt_tokens:
                raise PromptError(
                    f"a prompt of {work.prompt_tokens} tokens has {tokens} by the endpoint's usage: "
                    "--tokenizer is another model's, or the tokenizer does not split text at spaces"
                )
    except PromptError as error:
        raise EndpointError(f"{client.target.name}: {error}") from error
    return words


async def _with_overhead(client: Client, api: Api, words: Vocabulary, counter: Callable[[str], int]) -> Vocabulary:
    """Return the vocabulary with what the endpoint adds to a prompt, which a tokenizer alone does not know."""
    added = await client.count(api, FIRST) - counter(FIRST)
    return Vocabulary(words.overhead + added, words.tokens)
