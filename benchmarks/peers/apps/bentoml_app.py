"""BentoML's service."""

import bentoml
from models import classify, echo


@bentoml.service(workers=1)
class Service:
    @bentoml.api(route="/echo")
    def echo(self, input: list[float]) -> list[float]:  # noqa: A002
        return echo(input).tolist()

    @bentoml.api(route="/classify")
    def classify(self, input: list[int]) -> list[list[float]]:  # noqa: A002
        return classify(input).tolist()
