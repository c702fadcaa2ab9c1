"""Traces from CSV texts, and the errors of invalid ones."""

import numpy as np
import pytest

from argosy.simulation.tracefiles import TraceError, invocations, read_trace

AZURE_LLM = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:17:03.9799600,4808,10
2023-11-16 18:17:04.4799600,3180,8
"""
AZURE_FUNCTIONS = """HashOwner,HashApp,HashFunction,Trigger,480,481,482
o,a,f1,http,0,3,1
o,a,f2,timer,2,0,0
"""


def test_requests_by_model_begin_with_the_first_of_all():
    by_model = read_trace("time,model\n12.5,b\n10,a\n11,a\n", "t.csv")
    assert {model: trace.arrivals.tolist() for model, trace in by_model.items()} == {"b": [2.5], "a": [0.0, 1.0]}
    assert {trace.seconds for trace in by_model.values()} == {2.5}


def test_azures_llm_trace_has_tokens():
    trace = read_trace(AZURE_LLM, "code.csv")[""]
    assert trace.arrivals == pytest.approx([0.0, 0.5])
    assert (trace.prompts.tolist(), trace.outputs.tolist()) == ([4808, 3180], [10, 8])


@pytest.mark.parametrize("zone", ["+02:00", "Z", ""])
def test_a_date_has_its_zone_after_seven_digits(zone):
    offset = 2.0 if zone == "+02:00" else 0.0
    trace = read_trace(f"time\n2023-11-16 18:00:00.1234567{zone}\n2023-11-16 18:00:00.123456+00:00\n", "t.csv")[""]
    assert trace.arrivals == pytest.approx([0.0, 3600 * offset])


def test_azures_functions_are_drawn_within_their_minutes():
    trace = read_trace(AZURE_FUNCTIONS, "inv.csv")[""]
    assert (len(trace.arrivals), trace.seconds) == (6, 180.0)
    assert np.histogram(trace.arrivals, bins=[0, 60, 120, 180])[0].tolist() == [2, 3, 1]
    assert len(invocations(AZURE_FUNCTIONS, "inv.csv", {"HashFunction": "f2"}, times=3).arrivals) == 6


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", r"t\.csv: line 1: the columns need a time"),
        ("when\n1\n", r"line 1: .*found when"),
        ("time\n", "holds no request"),
        ("time\n1\nsoon\n", r"t\.csv: line 3: time must be a number of at least 0; found 'soon'"),
        ("time\n-1\n", "line 2: time must be a number"),
        ("time\nnan\n", "line 2: time must be a number"),
        ("time\n2023-13-45 10:00:00\n", r"line 2: time '2023-13-45 10:00:00' is no date"),
        ("time,prompt\n1,many\n", "line 2: prompt must be a number"),
        ("HashFunction,Trigger,1\nf,http,x\n", "line 2: minute 1 must be a number"),
        ("HashFunction,Trigger\nf,http\n", "no function with minutes"),
        ("HashFunction,Trigger,1,2\n\nf,http,1\n", "line 3: minute 2 must be a number"),
        ("HashFunction,Trigger,1,2\nf,http,0,0\n", "holds no request: the counts of all minutes are 0"),
        (
            "HashFunction,1\nf,7\ng,9e14\n",
            r"line 3: with it there are 900,000,000,000,007 requests; .* have 20,000,000",
        ),
        (
            f"HashFunction,{','.join(map(str, range(44641)))}\nf{',1' * 44641}\n",
            "line 2: its 44,641 minutes are 2,678,460 s",
        ),
        ("time\n1\n9e14\n5\n", r"line 3: time is 899,999,999,999,999 s after .* line 2 has; .* 2,678,400 s long"),
        ("time\n2023-11-16 18:00:00\n5\n", "line 2: time is 1,700,157,595 s after the first, which line 3 has"),
        (f"time\n1\n{'1' * 131073}\n", r"line 3: is no line of a CSV: field larger than field limit \(131072\)"),
        ("time,model\n1,a\n2,\n", "line 3: names no model, as other lines do"),
    ],
)
def test_what_is_no_trace_is_refused_by_its_line(text, says):
    with pytest.raises(TraceError, match=says):
        read_trace(text, "t.csv")
