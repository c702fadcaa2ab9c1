"""The sticky keys on the page about versions are accepted by the server's own rules."""

from google.protobuf import text_format
from tests.docs.blocks import ROOT, blocks
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.modelconfig.parameters.traffic import MILLIONTHS, Sticky, version_traffic

PAGE = ROOT / "docs/how-to/version-traffic.md"


def test_the_page_declares_keys() -> None:
    (text,) = [block.text for block in blocks(PAGE.read_text()) if block.label == "pbtxt"]
    traffic = version_traffic(text_format.Parse(text, ModelConfig()))
    assert traffic is not None
    assert sum(traffic.weights.values()) == MILLIONTHS
    assert traffic.sticky == (Sticky(header="x-user"), Sticky(parameter="user"))
