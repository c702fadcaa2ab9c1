"""What is known of models that an agent's state has no room for. Pure.

They are there, as far as is known: what its server had ready when that was last heard of counts on, and is marked.
"""

from dataclasses import replace

from argosy_agent.contract import LoadedModel, LoadState, RenderedRepository
from argosy_agent.contract.documents import AgentState


def with_last_reported(said: AgentState, noted: RenderedRepository | None) -> tuple[AgentState, frozenset[str]]:
    """Return the state with what is noted of models that it leaves out, and their names.

    `noted`: what the server was asked to have and had ready; None where that is not known.
    """
    if not said.left_out or noted is None:
        return said, frozenset()
    told = {each.model for each in said.models} | {each.declared_name for each in said.applied.models}
    unsaid = tuple(each for each in noted.models if each.declared_name not in told)
    models = tuple(
        LoadedModel(each.declared_name, v, LoadState.READY) for each in unsaid for v in sorted(each.versions)
    )
    applied = replace(said.applied, models=(*said.applied.models, *unsaid))
    names = frozenset(each.declared_name for each in unsaid)
    return replace(said, models=(*said.models, *models), applied=applied), names


def trouble(said: AgentState) -> str:
    """Return why a state is not whole, in words; empty where it is."""
    if not said.left_out:
        return ""
    return (
        f"its agent's ConfigMap is full, and says nothing of {said.left_out} more models; what was last known of them "
        "counts until fewer are there"
    )
