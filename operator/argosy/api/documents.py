"""Parses texts and bodies into resources. Errors are returned as problems, never raised."""

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from argosy.api.ensemble import Ensemble
from argosy.api.inferencemodel import InferenceModel
from argosy.api.problems import Problem, explain
from argosy.api.servingpool import ServingPool
from argosy.api.values.identity import Identity
from argosy.api.values.meta import API_VERSION, GROUP
from argosy.api.yamltext import YamlTextError, read_documents
from argosy_common.wording import did_you_mean

Member = InferenceModel | Ensemble
"""What a pool serves."""
Resource = Member | ServingPool

KINDS: dict[str, type[InferenceModel] | type[Ensemble] | type[ServingPool]] = {
    "InferenceModel": InferenceModel,
    "Ensemble": Ensemble,
    "ServingPool": ServingPool,
}
"""The model class of each kind."""


def parse_documents(text: str, source: str) -> tuple[list[Resource], list[Problem]]:
    """Return the valid resources in a YAML text of any number of documents and Lists, and all problems.

    Other kinds of objects are skipped. `source` is the file's name for problems.
    """
    resources: list[Resource] = []
    problems: list[Problem] = []
    try:
        for number, document in enumerate(read_documents(text), 1):
            bodies = list(_bodies(document.value, f"document {number}"))
            if bodies:
                problems += [Problem(source, f"document {number}", "", str(fault)) for fault in document.repeated]
            for label, body in bodies:
                resource, errors = parse_body(body, source, label)
                problems += errors
                if resource is not None and not document.repeated:
                    resources.append(resource)
    except YamlTextError as fault:
        problems.append(Problem(source, "", "", str(fault)))
    return resources, problems


def _bodies(value: Any, label: str) -> Iterator[tuple[str, Any]]:
    """Yield the bodies in a document, and in its Lists, that are or might be meant to be Argosy's, with a label."""
    if not isinstance(value, dict):
        yield label, value
    elif str(value.get("kind", "")).endswith("List") and isinstance(value.get("items"), list):
        for index, item in enumerate(value["items"]):
            yield from _bodies(item, f"{label} items[{index}]")
    elif str(value.get("kind")) in KINDS or str(value.get("apiVersion", GROUP)).partition("/")[0] == GROUP:
        yield label, value


def parse_body(body: Any, source: str = "", label: str = "document") -> tuple[Resource | None, list[Problem]]:
    """Return the resource of a body, or None and its problems."""
    if not isinstance(body, dict):
        return None, [
            Problem(source, label, "", f"expected a resource, a map with apiVersion and kind; found {body!r}")
        ]
    identity = _identity(body, label)
    wrong = list(_wrong_type(body, source, identity))
    kind = KINDS.get(str(body.get("kind")))
    if kind is None:
        return None, wrong
    try:
        model = kind.model_validate(body, by_alias=True, by_name=False)
    except ValidationError as error:
        invalid = [Problem(source, identity, path, message) for path, message in explain(error, kind)]
        reported = {problem.path for problem in wrong}
        return None, wrong + [problem for problem in invalid if problem.path not in reported]
    return (None, wrong) if wrong else (model, [])


def _identity(body: dict[str, Any], label: str) -> str:
    metadata, kind = body.get("metadata"), body.get("kind")
    if not isinstance(metadata, dict) or not isinstance(kind, str) or not isinstance(metadata.get("name"), str):
        return label
    return Identity.of(str(kind), str(metadata.get("namespace") or "default"), str(metadata["name"]))


def _wrong_type(body: dict[str, Any], source: str, identity: str) -> Iterator[Problem]:
    version, kind = body.get("apiVersion"), body.get("kind")
    if version != API_VERSION:
        actual = f"found {version!r}" if version else "it is missing"
        yield Problem(source, identity, "apiVersion", f"must be {API_VERSION}; {actual}")
    if str(kind) not in KINDS:
        yield Problem(source, identity, "kind", f"{kind!r} is none of Argosy's kinds{did_you_mean(str(kind), KINDS)}")
