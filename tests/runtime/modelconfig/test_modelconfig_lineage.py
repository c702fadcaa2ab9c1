"""The one topological order, ensembles within ensembles, and which decoupled step an answer stems from."""

from hypothesis import given
from hypothesis import strategies as st
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.modelconfig import EnsembleGraph
from argosy_runtime.modelconfig.ensembles import nesting
from argosy_runtime.modelconfig.ensembles.graph import Lineage, waves

names = st.sampled_from("abcdef")
graphs = st.dictionaries(names, st.lists(st.sampled_from("abcdefxyz"), max_size=4), max_size=6)


def inside(steps: dict[str, list[str]], name: str) -> set[str]:
    """Return all that an ensemble runs, at any depth."""
    result: set[str] = set()
    while new := {model for item in (name, *result) for model in steps.get(item, ())} - result:
        result |= new
    return result


@given(graphs)
def test_inner_ensembles_come_first(steps):
    order = nesting.inner_first(steps)
    assert sorted(order) == sorted(steps)
    sound = [name for name in order if not any(item in inside(steps, item) for item in {name} | inside(steps, name))]
    assert order[: len(sound)] == sound, "those in a circle, or around one, come last"
    for location, name in enumerate(sound):
        assert steps.keys() & inside(steps, name) <= set(sound[:location])


@given(graphs, st.sampled_from("abcdefxyz"))
def test_who_follows_a_model(steps, model):
    assert set(nesting.dependents(steps, model)) == {name for name in steps if model in inside(steps, name)}


@given(graphs)
def test_who_holds_itself(steps):
    for name in steps:
        assert (nesting.circle(name, steps) is not None) == (name in inside(steps, name))


def test_what_is_reported_of_a_circle():
    steps = {"a": ["b"], "b": ["x", "a"], "c": ["a"], "d": ["d"]}
    assert nesting.circle("a", steps) == "circular dependency between ensembles: a -> ... -> b -> a"
    assert nesting.circle("d", steps) == "circular dependency between ensembles: d -> ... -> d -> d"
    assert nesting.circle("c", steps) is None


flows = st.lists(st.tuples(st.frozensets(names, max_size=3), st.frozensets(names, max_size=2)), max_size=6)


@given(flows, st.frozensets(names, max_size=2))
def test_every_wave_has_what_it_needs_and_no_one_waits_in_vain(flow, first):
    result = waves(range(len(flow)), lambda item: flow[item][0], lambda item: flow[item][1], first)
    ready = set(first)
    for wave in result:
        assert wave == tuple(sorted(wave))
        assert all(flow[item][0] <= ready for item in wave)
        ready |= {tensor for item in wave for tensor in flow[item][1]}
    left = set(range(len(flow))) - {item for wave in result for item in wave}
    assert not any(flow[item][0] <= ready for item in left)


def graph(*steps: tuple[str, str, str], outputs: str = "out") -> EnsembleGraph:
    """Return the graph of steps (model, tensors it reads, tensors it writes); the ensemble's one input is `in`."""
    config = ModelConfig(name="e")
    config.input.add(name="in")
    for name in outputs.split():
        config.output.add(name=name)
    for model, reads, writes in steps:
        step = config.ensemble_scheduling.step.add(model_name=model, model_version=-1)
        step.input_map.update({name: name for name in reads.split()})
        step.output_map.update({name: name for name in writes.split()})
    return EnsembleGraph.parse(config)


def lineage(*steps: tuple[str, str, str], outputs: str = "out") -> Lineage:
    """Return the lineage of steps; those whose model's name begins with s are decoupled."""
    return Lineage.of(graph(*steps, outputs=outputs), lambda step: step.model_name.startswith("s"))


def test_what_depends_on_a_decoupled_step_is_of_its_stream():
    result = lineage(("s", "in", "a"), ("m", "in", "b"), ("n", "a b", "out"))
    assert (result.streams, result.output, result.mixed) == ({0: None, 1: None, 2: 0}, 0, ())


def test_a_decoupled_step_within_a_stream_opens_one_below():
    result = lineage(("s1", "in", "a"), ("s2", "a", "b"), ("m", "a b", "out"))
    assert (result.streams, result.output, result.mixed) == ({0: None, 1: 0, 2: 1}, 1, ())


def test_streams_that_do_not_stem_from_one_another_are_mixed():
    steps = (("s1", "in", "a"), ("s2", "in", "b"))
    result = lineage(*steps, ("m", "a b", "out"))
    assert [step.model_name for step in result.mixed if step is not None] == ["m"]
    assert lineage(*steps, outputs="a b").mixed == (None,)


def test_steps_that_can_never_run_have_no_stream():
    assert lineage(("m", "in", "out"), ("n", "none", "x")).streams == {0: None}
