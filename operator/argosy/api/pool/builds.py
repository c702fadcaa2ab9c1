"""Credentials and images of a pool's engine builds."""

from typing import Annotated

from pydantic import Field, StringConstraints

from argosy.api.values.base import ApiModel
from argosy.api.values.meta import Name

ImagePattern = Annotated[str, StringConstraints(pattern=r"^[^\s*]+\*?$", min_length=1, max_length=512)]
"""An image, or with a star at its end all that begin so."""


class Builds(ApiModel):
    """What engine builds may use."""

    secret_name: Name | None = Field(
        default=None,
        description="A Secret with the credentials of builds, which read models and write the engine cache. Default: "
        "storage.secretName, whose credentials must then allow writing there.",
    )
    service_account_name: Name | None = Field(
        default=None,
        description="The builds' service account. Default: storage.serviceAccountName, or else one for each build.",
    )
    allowed_images: tuple[ImagePattern, ...] = Field(
        default=(),
        max_length=64,
        description="Images that a model's engine.image may name; a trailing * matches any suffix. Builds in them "
        "get the credentials above. Default: only the release's image and runtime.image.",
    )

    def allows(self, image: str) -> bool:
        """Return whether `allowedImages` lists an image."""
        return any(
            image.startswith(allowed.removesuffix("*")) if allowed.endswith("*") else image == allowed
            for allowed in self.allowed_images
        )
