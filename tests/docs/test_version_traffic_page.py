"""The parameters on the pages about versions are accepted by the server's own rules."""

from google.protobuf import text_format
from tests.docs.blocks import ROOT, blocks
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.modelconfig.parameters.traffic import MILLIONTHS, OutputTolerance, Shadow, Sticky, version_traffic

PAGE = ROOT / "docs/how-to/version-traffic.md"
SHADOW_PAGE = ROOT / "docs/how-to/shadow.md"


def test_the_page_declares_keys() -> None:
    (text,) = [block.text for block in blocks(PAGE.read_text()) if block.label == "pbtxt"]
    traffic = version_traffic(text_format.Parse(text, ModelConfig()))
    assert traffic is not None
    assert sum(traffic.weights.values()) == MILLIONTHS
    assert traffic.sticky == (Sticky(header="x-user"), Sticky(parameter="user"))


def test_the_page_declares_a_shadow() -> None:
    (text,) = [block.text for block in blocks(SHADOW_PAGE.read_text()) if block.label == "pbtxt"]
    traffic = version_traffic(text_format.Parse(text, ModelConfig()))
    assert traffic is not None
    assert traffic.shadow == Shadow(2, 100_000, (OutputTolerance("score", absolute=0.001),))
