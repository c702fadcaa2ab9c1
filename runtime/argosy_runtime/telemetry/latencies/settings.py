"""Which of Triton's families of latencies are exposed: `--metrics-config`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

Quantile = tuple[float, float]
"""A quantile, 0 to 1, and the error that it may have; ours are more exact than Triton's default ones."""

_DEFAULT_QUANTILES: Final[tuple[Quantile, ...]] = (
    (0.5, 0.05),
    (0.9, 0.01),
    (0.95, 0.001),
    (0.99, 0.001),
    (0.999, 0.001),
)


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """The families to expose: counters of latencies, summaries with their quantiles, the histogram of first responses.

    `histograms` None: of decoupled models alone. `unknown` are settings that Triton does not have either,
    `undecided` those with other values than true and false, which leave the default.
    """

    counters: bool = True
    summaries: bool = False
    quantiles: Sequence[Quantile] = _DEFAULT_QUANTILES
    histograms: bool | None = None
    unknown: Sequence[str] = ()
    undecided: Sequence[str] = ()
    wrong_quantiles: Sequence[str] = ()

    @classmethod
    def of(cls, settings: Iterable[tuple[str, str]]) -> "MetricsSettings":
        """Read settings and their values. Of equal settings the last one counts; other values than true and false
        leave the default, as in Triton.
        """
        values = dict(settings)
        quantiles, wrong = _quantiles(values.get("summary_quantiles", ""))
        histograms = values.get("histogram_latencies")
        return cls(
            counters=values.get("counter_latencies") != "false",
            summaries=values.get("summary_latencies") == "true",
            quantiles=tuple(quantiles) or _DEFAULT_QUANTILES,
            histograms=_SWITCHED.get(histograms or ""),
            unknown=tuple(name for name in values if name not in (*_SWITCHES, "summary_quantiles")),
            undecided=tuple(
                f"{name}={values[name]}" for name in _SWITCHES if values.get(name, "true") not in _SWITCHED
            ),
            wrong_quantiles=tuple(wrong),
        )


DEFAULTS: Final = MetricsSettings()
"""The defaults."""
_SWITCHES: Final = ("counter_latencies", "summary_latencies", "histogram_latencies")
_SWITCHED: Final = {"true": True, "false": False}


def _quantiles(text: str) -> tuple[list[Quantile], list[str]]:
    """Return the quantiles of `<quantile>:<error>,…`, and what is wrong with the others."""
    quantiles: list[Quantile] = []
    wrong: list[str] = []
    for pair in text.split(",") if text else ():
        quantile, colon, error = pair.partition(":")
        if not colon:
            wrong.append(f"Invalid option: [{pair}]. No ':' delimiter found. Expected format is <quantile>:<error>")
            continue
        try:
            quantiles.append((float(quantile), float(error)))
        except ValueError as problem:
            wrong.append(f"Invalid option: [{pair}]. Error: {problem}")
    return quantiles, wrong
