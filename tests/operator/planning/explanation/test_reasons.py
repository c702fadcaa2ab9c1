"""Why each replica is where it is: what decided comes first."""

from dataclasses import replace

from tests.operator.planning.declared import gpu_node, linked_node, lone

from argosy.api.values.identity import PoolKey
from argosy.planning.explanation.reasons import ExplainedReplica, Rule, explained_replicas
from argosy.planning.facts import Demand, Footprint, Group, Node, PoolFacts
from argosy.planning.packing.priorities import pack_by_priority
from argosy.planning.requirements import NodeRequirements
from argosy.planning.spreading import HOSTNAME

POOL = PoolKey("n/p")
GIB = 1 << 30


def explained(nodes: list[Node], *groups: Group, runs: bool = False) -> dict[str, list[ExplainedReplica]]:
    facts = PoolFacts(POOL, tuple(nodes), groups)
    plan = pack_by_priority([facts]).plan
    if runs:
        facts = replace(facts, current=plan.pools[0].current)
        plan = pack_by_priority([facts]).plan
    result: dict[str, list[ExplainedReplica]] = {}
    for replica in explained_replicas([facts], plan, {POOL: facts.current} if runs else None):
        result.setdefault(replica.group, []).append(replica)
    return result


def rules(replica: ExplainedReplica) -> list[Rule]:
    return [rule for rule, _ in replica.reasons]


def requiring(name: str, requires: NodeRequirements, memory: int = 10) -> Group:
    return Group(name, (Demand(name, 1, Footprint(memory * GIB, 100), requires=requires),))


def test_models_that_share_a_gpu_take_no_further_one() -> None:
    result = explained([gpu_node("a", 2)], lone("x", Footprint(40 * GIB, 100)), lone("y", Footprint(20 * GIB, 100)))
    (replica,) = result["x"]
    assert replica.reasons[0] == (Rule.FEWEST_GPUS, "it fills GPU 0 with y, which takes no further GPU")


def test_a_gpu_of_its_own_is_due_to_what_the_others_have_left() -> None:
    result = explained([gpu_node("a", 2)], lone("x", Footprint(40 * GIB, 100)), lone("y", Footprint(30 * GIB, 100)))
    assert "no other GPU in use has 30 GiB and 10 % of compute left for it" in result["y"][0].reasons[0][1]


def test_what_ran_before_stays() -> None:
    result = explained([gpu_node("a", 2)], lone("x", Footprint(40 * GIB, 100)), runs=True)
    assert result["x"][0].reasons[0] == (Rule.STAYS, "it ran on server p-0 before, and nothing has to move")


def test_the_only_gpus_of_a_type_decide() -> None:
    nodes = [replace(gpu_node("a", 1), product="A100"), replace(gpu_node("b", 1), product="H200")]
    result = explained(nodes, requiring("x", NodeRequirements(products=frozenset({"H200"}))))
    assert result["x"][0].reasons[0] == (Rule.ONLY_NODES, "1 of 2 nodes will do (b): a GPU of product H200")


def test_a_pin_comes_before_where_it_ran() -> None:
    nodes = [replace(gpu_node(name, 1), labels={HOSTNAME: name}) for name in ("a", "b")]
    result = explained(nodes, requiring("x", NodeRequirements(((HOSTNAME, "b"),))), runs=True)
    assert result["x"][0].reasons[0] == (Rule.PINNED, "its nodeSelector names node b")
    assert rules(result["x"][0])[1] is Rule.STAYS


def test_what_shares_a_server_and_takes_full_gpus_says_so() -> None:
    both = Group("e", (Demand("big", 1, Footprint(60 * GIB, 0, 2)), Demand("small", 1, Footprint(GIB, 100))))
    (replica,) = explained([linked_node("a", 4)], both)["e"]
    assert rules(replica) == [Rule.SHARES_SERVER, Rule.FULL_GPUS, Rule.FEWEST_GPUS]
    assert replica.reasons[1][1] == "big takes 2 GPUs that NVLink joins for itself"


def test_replicas_name_where_the_others_are() -> None:
    result = explained([gpu_node("a", 1), gpu_node("b", 1)], lone("x", Footprint(GIB, 100), 2))
    assert {replica.reasons[0][1].rpartition(" ")[2] for replica in result["x"]} == {"a", "b"}
    assert {rules(replica)[0] for replica in result["x"]} == {Rule.SPREAD}


def test_what_needs_no_gpu_runs_on_the_cpu() -> None:
    (replica,) = explained([gpu_node("a", 1)], lone("x", Footprint()))["x"]
    assert (replica.gpus, replica.reasons[0][1]) == ((), "it needs no GPU, and runs on the CPU of its server")
