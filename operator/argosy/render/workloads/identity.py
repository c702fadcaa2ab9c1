"""How objects are told apart, and whose they are."""

from collections.abc import Iterable

from .inputs import KubernetesObject


def object_identity(body: KubernetesObject) -> str:
    """`Kind namespace/name`, of an object whose metadata has both."""
    metadata = body["metadata"]
    return f"{body['kind']} {metadata['namespace']}/{metadata['name']}"


def owners(objects: Iterable[KubernetesObject]) -> dict[str, str]:
    """By object identity, that of the resource whose status tells when the object cannot be applied: its owner's."""
    return {object_identity(each): _owner(each) for each in objects}


def _owner(body: KubernetesObject) -> str:
    metadata = body["metadata"]
    (reference,) = (each for each in metadata["ownerReferences"] if each.get("controller"))
    return f"{reference['kind']} {metadata['namespace']}/{reference['name']}"
