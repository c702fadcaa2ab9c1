"""The rules for splitting a model, in one table: each with its condition, its message with numbers, and its advice.

A rule that `refuses` finds parallelism for which no engine can be built; the others only advise.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from argosy.api import InferenceModel, Problem, Resource
from argosy.planning.topology import capacity, divisibility, traffic
from argosy.planning.topology.deployment import Deployment
from argosy.planning.variants import declared_identity, expanded
from argosy_agent.contract.builds import ModelShape

Says = Callable[[Deployment], str]


@dataclass(frozen=True, slots=True)
class SplitRule:
    """A rule. `says` returns the finding and `do` the advice; both are called only if `when` is true."""

    name: str
    when: Callable[[Deployment], bool]
    says: Says
    do: Says
    refuses: bool = False


@dataclass(frozen=True, slots=True)
class Advice:
    """What a rule has to say."""

    rule: str
    message: str
    refuses: bool


_D, _C, _T = divisibility, capacity, traffic
RULES = (
    SplitRule("HeadsNotDivided", _D.heads_not_divided, _D.says_heads, _D.take_a_tensor, True),
    SplitRule(
        "KeyValueHeadsNotDivided", _D.key_value_heads_not_divided, _D.says_key_value_heads, _D.take_a_tensor, True
    ),
    SplitRule("TooFewLayers", _D.too_few_layers, _D.says_too_few_layers, _D.take_fewer_stages, True),
    SplitRule("ExpertsNotDivided", _D.experts_not_divided, _D.says_experts, _D.change_experts, True),
    SplitRule("TooLarge", _C.too_large, _C.says_too_large, _C.make_it_fit),
    SplitRule("AcrossNVLink", _C.across_nvlink, _C.says_across_nvlink, _C.stay_within_nvlink),
    SplitRule("DecodeHeavy", _T.decodes_on_too_many, _T.says_decode, _T.decode_on_fewer),
    SplitRule("PrefillHeavy", _T.prefills_on_one, _T.says_prefill, _T.prefill_on_more),
    SplitRule("PipelineWithinNVLink", _C.pipelines_within_nvlink, _C.says_pipeline, _C.share_layers),
    SplitRule("StagesUneven", _D.stages_uneven, _D.says_stages, _D.take_even_stages),
    SplitRule("KeyValueHeadsRepeated", _D.key_value_heads_repeated, _D.says_repeated, _D.take_as_many_as_heads),
    SplitRule("ExpertsNarrow", _D.experts_narrow, _D.says_narrow, _D.deal_out_experts),
    SplitRule("FewSequences", _C.few_sequences, _C.says_few_sequences, _C.lower_limits),
)


def advice(deployment: Deployment) -> tuple[Advice, ...]:
    """Return all that the rules say; where one refuses, only what refuses, as other numbers mean nothing then."""
    findings = tuple(
        Advice(rule.name, f"{rule.says(deployment)}; {rule.do(deployment)}", rule.refuses)
        for rule in RULES
        if rule.when(deployment)
    )
    return tuple(finding for finding in findings if finding.refuses) or findings


def refusals(
    resources: Iterable[Resource], shapes: Mapping[str, ModelShape], sources: Mapping[str, str]
) -> Iterator[Problem]:
    """Yield a problem for each refusal. `shapes` and `sources`, the resources' files, are by identity."""
    for model in expanded(resources):
        if isinstance(model, InferenceModel) and (shape := shapes.get(model.identity)) is not None:
            for finding in advice(Deployment.of(model, shape)):
                if finding.refuses:
                    owner = declared_identity(model)
                    yield Problem(sources.get(owner, ""), owner, "spec", finding.message)
