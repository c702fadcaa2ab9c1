"""The three resources of `argosy.dev/v1alpha1`, their rules, and the CRDs generated from them.

Pure: models, parsing of text that was already read, and JSON schemas. There is no file, network, cluster client or
clock here, and no rule that spans resources (see `argosy.planning.validation.references`).
"""

from argosy.api.conditions import Condition, ConditionStatus, ConditionType, Reason
from argosy.api.documents import KINDS, Member, Resource, parse_body, parse_documents
from argosy.api.ensemble import Ensemble, EnsembleSpec, Step
from argosy.api.inferencemodel import InferenceModel, InferenceModelSpec
from argosy.api.problems import Problem
from argosy.api.servingpool import ServingPool, ServingPoolSpec
from argosy.api.status import EnsembleStatus, InferenceModelStatus, ServingPoolStatus
from argosy.api.values.base import ApiModel, Fault, Rule
from argosy.api.values.meta import API_VERSION, GROUP, VERSION, ObjectMeta

__all__ = [
    "API_VERSION",
    "GROUP",
    "VERSION",
    "KINDS",
    "Member",
    "Resource",
    "InferenceModel",
    "InferenceModelSpec",
    "InferenceModelStatus",
    "Ensemble",
    "EnsembleSpec",
    "EnsembleStatus",
    "Step",
    "ServingPool",
    "ServingPoolSpec",
    "ServingPoolStatus",
    "ObjectMeta",
    "Condition",
    "ConditionStatus",
    "ConditionType",
    "Reason",
    "Problem",
    "parse_body",
    "parse_documents",
    "ApiModel",
    "Fault",
    "Rule",
]
