"""What a model should achieve, which its replicas follow."""

from pydantic import Field

from argosy.api.base import ApiModel, Number


class Slo(ApiModel):
    """What the model should achieve. Replicas are added, up to maxReplicas, while it does not."""

    queue_delay_milliseconds: Number | None = Field(
        default=None, gt=0, description="The mean time a request may wait in the queue, in milliseconds."
    )
    latency_milliseconds: Number | None = Field(
        default=None, gt=0, description="The mean time from request to response, in milliseconds."
    )
    time_to_first_token_milliseconds: Number | None = Field(
        default=None,
        gt=0,
        description="The mean time from request to the first of several responses, in milliseconds.",
    )
