"""Builds of engines as their pool bounds them: by which credentials, and in which images."""

from typing import Annotated

from pydantic import Field, StringConstraints

from argosy.api.values.base import ApiModel
from argosy.api.values.meta import Name

ImagePattern = Annotated[str, StringConstraints(pattern=r"^[^\s*]+\*?$", min_length=1, max_length=512)]
"""An image, or with a star at its end all that begin so."""


class Builds(ApiModel):
    """What builds of engines may use."""

    secret_name: Name | None = Field(
        default=None,
        description="A Secret with the credentials of builds: to read models, to write the engine cache. Default: that "
        "of storage.secretName, which then has to be allowed to write there.",
    )
    service_account_name: Name | None = Field(
        default=None,
        description="The builds' service account. Default: storage.serviceAccountName, else one of each build's own.",
    )
    allowed_images: tuple[ImagePattern, ...] = Field(
        default=(),
        max_length=64,
        description="Images that a model's engine.image may name; a star at the end stands for any rest. Builds have "
        "the credentials above. Default: none but the release's and runtime.image.",
    )

    def allows(self, image: str) -> bool:
        """Return whether builds may run in this image because it is listed."""
        return any(
            image.startswith(each.removesuffix("*")) if each.endswith("*") else image == each
            for each in self.allowed_images
        )
