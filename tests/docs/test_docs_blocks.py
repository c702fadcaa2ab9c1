"""The collector finds the blocks, and tells what is to be run."""

import pytest
from tests.docs.blocks import Block, blocks, mistakes

TEXT = """
# Title

```sh
argosy plan -f x \\
  -o json   # the plan
```

```
a diagram ──► of things
```

- in a list:

  ```sh
  argosy up examples/x
  ```

````
```sh
not a block
```
````
"""


def test_blocks_in_their_order() -> None:
    fenced = blocks(TEXT)
    assert [(block.line, block.label) for block in fenced] == [(4, "sh"), (9, ""), (15, "sh"), (19, "")]
    assert fenced[0].commands == ["argosy plan -f x -o json"]
    assert fenced[2].text == "argosy up examples/x\n"
    assert [block.is_run for block in fenced] == [True, False, True, False]
    assert [block.goes_on for block in fenced] == [False, False, True, False]


def test_a_block_that_is_not_closed() -> None:
    with pytest.raises(ValueError, match="line 1 is not closed"):
        blocks("```sh\nargosy plan\n")


def _block(label: str, text: str) -> Block:
    return Block(7, label, text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("argosy up examples/x", True),
        ("# first\nargosy serve --model-repository=m", True),
        ("argosy up examples/x --once", False),
        ("argosy serve --help", False),
        ("argosy get", False),
        ("argosy up x\ncurl y", False),
    ],
)
def test_what_goes_on(text: str, expected: bool) -> None:
    assert _block("sh", text).goes_on is expected


@pytest.mark.parametrize(
    ("label", "text", "expected"),
    [
        ("sh", "argosy get", ""),
        ("sh", "argosy up x\ncurl y", "needs a block of its own"),
        ("", "argosy get", "looks like a command"),
        ("text", "curl localhost", "looks like a command"),
        ("", "prompt ─► text", ""),
        ("yaml", "kind: Ensemble", ""),
        ("console", "make run   # and wait", ""),
        ("console", "pip install 'argosy[runtime]'", ""),
        ("console", "argosy serve --model-repository=PATH --load-model='*'", ""),
        ("console", "argosy serve --model-repository=models", "nothing says why"),
        ("console", "make run\nargosy get", "'argosy get' is not run"),
    ],
)
def test_mistakes(label: str, text: str, expected: str) -> None:
    errors = mistakes(_block(label, text))
    assert (len(errors) == 1 and expected in errors[0]) if expected else errors == []
