"""The images that the tests run: those of our own Dockerfiles, and the storage's."""

import hashlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.images import buildah
from e2e.cluster.node.containerd import Containerd
from e2e.storage import pod as storage

ROOT = Path(__file__).parents[2]
PACKAGE = ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "operator", "runtime")
EXTRAS = "runtime,agent,onnxruntime,builder,profile,transformers,examples"
"""What examples/assistant and builds of engines need, and nothing more: every megabyte is built, packed, unpacked and
started from. With it come g++, by which AOTInductor compiles, and the library of NUMA nodes, which vLLM needs."""


@dataclass(frozen=True, slots=True)
class Images:
    """Their names, as Pods say them."""

    operator: str
    runtime: str
    storage: str


def prepare() -> None:
    """Build all images before tests, during which it takes longer. Raises ClusterUnavailableError."""
    _for_images(lambda image: _built(image, image.tag()))


def build(node: Containerd) -> Images:
    """Bring all images to the node. What was built of the same files before is not built again."""
    return Images(*_for_images(lambda image: _loaded(image, node)))


def _for_images(ready: Callable[["_Image"], str]) -> list[str]:
    """Return the tags that `ready` makes of every image."""
    names = ("e2e/argosy-operator", "e2e/argosy-runtime", "e2e/storage")
    with tempfile.TemporaryDirectory() as folder:
        storage.write_context(Path(folder))
        made = [
            _Image(names[0], ROOT / "operator/Dockerfile", ROOT, PACKAGE, {}),
            _Image(names[1], ROOT / "runtime/Dockerfile", ROOT, PACKAGE, {"EXTRAS": EXTRAS, "SYSTEM": "g++ libnuma1"}),
            _Image(names[2], Path(folder) / "Dockerfile", Path(folder), ("server.py", "files"), {}),
        ]
        buildah.ensure_base()
        # One waits for pip's downloads while another packs its layers.
        with ThreadPoolExecutor(len(made)) as pool:
            tags = list(pool.map(ready, made))
    buildah.trim()
    return tags


@dataclass(frozen=True, slots=True)
class _Image:
    """What an image is made of."""

    name: str
    dockerfile: Path
    context: Path
    sources: tuple[str, ...]
    args: Mapping[str, str]

    def tag(self) -> str:
        """Return its name, with a digest of all that goes into it."""
        digest = hashlib.sha256(repr(sorted(self.args.items())).encode())
        for path in (self.dockerfile, *self._files()):
            digest.update(f"{path.relative_to(self.context)}\0".encode() if path != self.dockerfile else b"")
            digest.update(path.read_bytes())
        return f"localhost/{self.name}:{digest.hexdigest()[:12]}"

    def _files(self) -> Iterator[Path]:
        for source in self.sources:
            root = self.context / source
            paths = sorted(root.rglob("*")) if root.is_dir() else [root]
            yield from (path for path in paths if path.is_file() and path.suffix not in (".pyc", ".so"))


def _built(image: _Image, tag: str) -> str:
    if not buildah.exists(tag):
        buildah.build(image.dockerfile, image.context, tag, image.args)
        buildah.remove_others(tag)
    return tag


def _loaded(image: _Image, node: Containerd) -> str:
    tag = image.tag()
    if tag not in node.images():
        buildah.load(_built(image, tag), node)
    return tag
