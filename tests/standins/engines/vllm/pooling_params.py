"""Parameters of pooling, some of them."""

import msgspec


class PoolingParams(msgspec.Struct, omit_defaults=True, array_like=True):
    use_activation: bool | None = None
    dimensions: int | None = None
    step_tag_id: int | None = None
    returned_token_ids: list[int] | None = None
    task: str | None = None
