"""Messages outside batches come out of their frames as they went in."""

from hypothesis import given
from hypothesis import strategies as st

from argosy_runtime.backends.engines.state import AdapterState, EngineState, EngineTimes, HistogramCounts
from argosy_runtime.execution.process.wire.control import UNANSWERED, Called, control_frame, read_from_process
from argosy_runtime.execution.process.wire.frames import FrameCutter

TOTALS = st.integers(0, 1 << 53)
NAMES = st.lists(st.text(max_size=9), max_size=3)
COUNTS = st.builds(HistogramCounts, st.lists(TOTALS, max_size=31), TOTALS)
STATES = st.builds(
    EngineState,
    *(TOTALS, TOTALS, st.none() | st.floats(0, 1), TOTALS, TOTALS),
    cached_tokens=st.none() | TOTALS,
    preemptions=TOTALS,
    asleep=st.booleans(),
    adapters=st.none() | st.builds(AdapterState, NAMES, NAMES, TOTALS),
    times=st.none() | st.builds(EngineTimes, *[COUNTS] * 7),
)


@given(STATES)
def test_the_state_of_an_engine_reaches_the_server_unchanged(state: EngineState):
    cutter = FrameCutter(writable=False)
    data = b"".join(control_frame(Called(UNANSWERED, state)))
    frames = []
    for byte in range(0, len(data), 1000):
        piece = data[byte : byte + 1000]
        while piece:
            buffer = cutter.buffer()
            size = min(len(buffer), len(piece))
            buffer[:size] = piece[:size]
            frames += cutter.came(size)
            piece = piece[size:]
    (frame,) = frames
    assert read_from_process(frame) == Called(UNANSWERED, state)
