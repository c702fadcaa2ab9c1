"""Arrivals over time: drawn from a rate by a seed, so that every run of a benchmark sees the same requests."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """When requests arrive: `arrivals` in seconds from the start, in order; `seconds` is how long the trace is. For a
    language model, each request's tokens: of its prompt (`prompts`) and to be generated (`outputs`).
    """

    name: str
    seconds: float
    arrivals: Floats
    prompts: Floats | None = None
    outputs: Floats | None = None


def drawn(name: str, rates: Floats, seed: int) -> Trace:
    """Return a Poisson process whose rate (per second) in each second is as given."""
    random = np.random.default_rng(seed)
    counts = random.poisson(rates)
    arrivals = np.repeat(np.arange(len(rates), dtype=np.float64), counts) + random.random(counts.sum())
    arrivals.sort()
    return Trace(name, float(len(rates)), arrivals)


def constant(rate: float, seconds: int, seed: int = 1) -> Trace:
    """Return the same load all the time."""
    return drawn("constant", np.full(seconds, rate), seed)


def diurnal(peak: float, seconds: int = 14400, seed: int = 2) -> Trace:
    """Return a day in `seconds`: a night with a tenth of the peak, two humps, and slow noise of a tenth."""
    random = np.random.default_rng(seed)
    hour = np.arange(seconds) / seconds * 24
    morning, evening = np.exp(-(((hour - 11) / 3.2) ** 2)), np.exp(-(((hour - 19.5) / 2.4) ** 2))
    shape = np.maximum(0.1, morning + 0.85 * evening)
    steps = np.repeat(random.normal(1, 0.1, seconds // 120 + 1), 120)[:seconds]
    return drawn("diurnal", peak * shape / shape.max() * np.clip(steps, 0.7, 1.3), seed)


def flash_crowd(base: float, times: float = 10.0, seconds: int = 7200, seed: int = 3) -> Trace:
    """Return a steady load that twice grows to `times` as much within a minute, stays for ten minutes, and fades."""
    at = np.arange(seconds, dtype=np.float64)
    extra = np.zeros(seconds)
    for begins in (seconds * 0.2, seconds * 0.6):
        since = at - begins
        rise = np.clip(since / 60, 0, 1)
        extra = np.maximum(extra, rise * np.where(since > 660, np.exp(-(since - 660) / 180), 1.0))
    return drawn("flash_crowd", base * (1 + (times - 1) * extra), seed)


def bursts(peak: float, seconds: int = 7200, seed: int = 4) -> Trace:
    """Return minutes at the peak that alternate with minutes without requests, of random lengths."""
    random = np.random.default_rng(seed)
    rates = np.zeros(seconds)
    at = 60.0
    while at < seconds:
        on, off = random.exponential(150) + 60, random.exponential(240) + 60
        rates[int(at) : int(at + on)] = peak
        at += on + off
    return drawn("bursts", rates, seed)


def ramp(peak: float, seconds: int = 7200, seed: int = 5) -> Trace:
    """Return a slow rise from a twentieth of the peak to it, a plateau, and a fall."""
    share = np.interp(np.arange(seconds) / seconds, [0, 0.6, 0.75, 1], [0.05, 1, 1, 0.05])
    return drawn("ramp", peak * share, seed)
