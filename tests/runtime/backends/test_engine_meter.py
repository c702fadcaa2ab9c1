"""What an engine measures: first tokens, times between tokens of each choice, tokens; and it counts once."""

from argosy_runtime.backends.engines.meter import EngineMeter, MeteredRequest
from argosy_runtime.backends.engines.state import HistogramCounts

MS = 1_000_000


def total(counts: HistogramCounts) -> tuple[int, int]:
    return sum(counts.counts), counts.total


def test_a_request_is_measured_from_its_arrival():
    meter = EngineMeter()
    request = MeteredRequest(meter, 100, now=5.0)
    request.began(5.25)
    request.began(5.5)
    request.generated(0, 5.5)
    request.generated(1, 6.0)
    request.generated(1, 6.125)
    request.answered(6.125, cached_tokens=64)
    times = meter.take()
    assert total(times.waited) == (1, 250 * MS)
    assert total(times.first_token) == (1, 1000 * MS)
    assert total(times.between_tokens) == (1, 125 * MS)
    assert total(times.answered) == (1, 1125 * MS)
    tokens = (times.prompt_tokens, times.generated_tokens, times.cached_tokens)
    assert [total(counts) for counts in tokens] == [(1, 100), (1, 2), (1, 64)]


def test_what_was_taken_is_not_taken_again():
    meter = EngineMeter()
    request = MeteredRequest(meter, 1, now=0.0)
    request.generated(1, 1.0)
    meter.take()
    request.generated(1, 2.0)
    times = meter.take()
    assert total(times.first_token) == (0, 0)
    assert total(times.between_tokens) == (1, 1000 * MS)
    assert total(meter.take().between_tokens) == (0, 0)


def test_tokens_that_come_together_divide_the_time():
    meter = EngineMeter()
    request = MeteredRequest(meter, 1, now=0.0)
    request.generated(4, 1.0)
    request.generated(4, 2.0)
    assert total(meter.take().between_tokens) == (4, 1000 * MS)


def test_choices_have_times_of_their_own_and_one_first_token():
    meter = EngineMeter()
    request = MeteredRequest(meter, 1, now=0.0)
    for choice, now in ((0, 1.0), (1, 1.5), (0, 2.0), (1, 2.5)):
        request.generated(1, now, choice)
    request.answered(2.5)
    times = meter.take()
    assert total(times.first_token) == (1, 1000 * MS)
    assert total(times.between_tokens) == (2, 2000 * MS)
    assert total(times.generated_tokens) == (1, 4)


def test_a_clock_that_jumps_back_measures_nothing_negative():
    meter = EngineMeter()
    request = MeteredRequest(meter, 1, now=9.0)
    request.generated(1, 1.0)
    assert total(meter.take().first_token) == (1, 0)
