import re

import pytest

from argosy_runtime.modelconfig import ConfigError, parse_text

PREFIX = "failed to read text proto from m/config.pbtxt: "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'name: "x"\ninput [ { nme: "a" } ]',
            'line 2, column 11: Message type "inference.ModelInput" has no field named "nme". Did you mean "name"?',
        ),
        ("max_batchsize: 8", 'Did you mean "max_batch_size"?'),
        ("instance_group [ { cnt: 1 } ]", 'Did you mean "count"?'),
        ('parameters { key: "a" vlue: {} }', 'Did you mean "value"?'),
        ("input [ { data_type: TYPE_FLOAT } ]", 'Did you mean "TYPE_FP32"?'),
        ("input [ { data_type: TYPE_BYTES } ]", 'Did you mean "TYPE_STRING"?'),
        ("instance_group [ { kind: KIND_GPUS } ]", 'Did you mean "KIND_GPU"?'),
        ("max_batch_size: 99999999999", "Value out of range: 99999999999"),
        ("dynamic_batching {} sequence_batching {}", "another member of oneof"),
        ('name: "a"\nname: "b"', 'line 2, column 7: Message type "inference.ModelConfig" should not have'),
        ('input { name: "x"', 'Expected "}"'),
    ],
)
def test_a_wrong_text_names_the_line_and_the_way_out(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_text(text, source="m/config.pbtxt")
    assert str(caught.value).startswith(PREFIX)
    assert message in str(caught.value)


def test_a_name_like_nothing_valid_gets_no_suggestion() -> None:
    with pytest.raises(ConfigError, match=re.escape('no field named "zzzzqq".') + "$"):
        parse_text("zzzzqq: 1")


def test_comments_and_both_list_syntaxes_are_read() -> None:
    one = parse_text('# c\ninput [ { name: "a" dims: [ 1, 2 ] }, { name: "b" } ]')
    two = parse_text('input { name: "a" dims: 1 dims: 2 } input { name: "b" }')
    assert one == two
