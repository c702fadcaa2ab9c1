"""Every manifest in a document is taken as it stands by what checks manifests in `argosy plan` and `argosy up`."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.blocks import DOCUMENTS, ROOT, Block, blocks

from argosy.api import Ensemble, Resource, ServingPool
from argosy.api.documents import parse_documents
from argosy.api.values.identity import Identity
from argosy.planning.topology.rules import refusals as contradictions
from argosy.planning.validation.graph import Invalid
from argosy.render.config.configrules import check_together


def manifests(document: Path) -> list[Block]:
    """Return the blocks of a document with whole resources of Argosy's: others show some fields of one."""
    return [
        block for block in blocks(document.read_text()) if block.label in ("yaml", "yml") and _has_resources(block.text)
    ]


def _has_resources(text: str) -> bool:
    return all(re.search(field, text, re.MULTILINE) for field in (r"^apiVersion: argosy\.dev/", r"^metadata:"))


def refusals(text: str) -> list[str]:
    """Return what is wrong with manifests, each and together. Resources to which they refer need not be among them."""
    resources, problems = parse_documents(text, "the page")
    others = Invalid({identity for resource in resources for identity in _referred(resource)})
    return [
        str(problem)
        for problem in (*problems, *check_together(resources, None, others), *contradictions(resources, {}, {}))
    ]


def _referred(resource: Resource) -> Iterator[str]:
    if isinstance(resource, ServingPool):
        return
    yield Identity.of("ServingPool", resource.namespace, resource.spec.pool_ref.name)
    if isinstance(resource, Ensemble):
        for step in resource.spec.steps:
            yield Identity.of("InferenceModel", resource.namespace, step.model)


@pytest.mark.parametrize(
    "document", [path for path in DOCUMENTS if manifests(path)], ids=lambda path: str(path.relative_to(ROOT))
)
def test_every_manifest_is_valid(document: Path) -> None:
    assert {block.line: refused for block in manifests(document) if (refused := refusals(block.text))} == {}


def test_manifests_are_read_from_the_pages() -> None:
    names = {str(path.relative_to(ROOT)) for path in DOCUMENTS if manifests(path)}
    assert {"docs/how-to/variants.md", "docs/how-to/adapters.md", "docs/how-to/kubernetes.md"} <= names


MODEL = """
apiVersion: argosy.dev/v1alpha1
kind: InferenceModel
metadata: {name: m}
spec: {poolRef: {name: others}, modelFormat: {name: onnx}, version: 1, storageUri: s3://models/m}
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (MODEL, ""),
        (MODEL.replace("version: 1", "version: 0"), "spec.version"),
        (MODEL.replace("version: 1", "verzion: 1"), "spec.verzion"),
        (MODEL.replace("v1alpha1", "v1"), "must be argosy.dev/v1alpha1"),
        (MODEL + "---" + MODEL, "there are two"),
        (MODEL.replace("onnx}", "vllm}, maxBatchSize: 8, inputs: [{name: x, dataType: TYPE_FP32, dims: [0]}]"), "dims"),
    ],
)
def test_what_is_refused(text: str, expected: str) -> None:
    refused = refusals(text)
    assert any(expected in problem for problem in refused) if expected else refused == []
