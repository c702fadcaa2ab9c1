"""Prompts."""


def tokens_input(prompt_token_ids, *, prompt=None, cache_salt=None):
    inputs = {"type": "token", "prompt_token_ids": prompt_token_ids}
    if prompt is not None:
        inputs["prompt"] = prompt
    if cache_salt is not None:
        inputs["cache_salt"] = cache_salt
    return inputs
