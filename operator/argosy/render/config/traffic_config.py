"""The parameter `version_traffic`: how the bundled server divides a model's requests among its versions.

It is no part of a configuration's keys: a server changes it in place.
"""

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as pb

from argosy.api.model.rollout.rollout import Rollout
from argosy.api.model.rollout.shadow import OutputTolerance as DeclaredTolerance
from argosy.api.servingpool import RuntimeName
from argosy.api.values.quantity import THOUSANDTHS
from argosy.planning.rollouts.member import MemberRollout, is_staged
from argosy.render.config.model_config import config_text
from argosy_runtime.modelconfig.parameters.traffic import (
    MILLIONTHS,
    PARAMETER,
    OutputTolerance,
    Shadow,
    Sticky,
    VersionTraffic,
    traffic_text,
)

_VERSION = 10**18
"""One with the most digits."""


def traffic_of(rollout: MemberRollout | None, runtime: RuntimeName) -> str:
    """Return the text of the parameter; empty for a member without a rollout, or without weights, and on NVIDIA's
    server, which answers with the highest version.
    """
    if rollout is None or not rollout.action.weights or runtime is not RuntimeName.ARGOSY:
        return ""
    settings = rollout.settings
    return traffic_text(
        VersionTraffic(
            weights=dict(sorted(rollout.action.weights.items())),
            sticky=_sticky(settings),
            shadow=_shadow(rollout, settings),
        )
    )


def with_traffic(text: str, traffic: str) -> str:
    """Return a configuration's text that divides requests so; without the parameter where `traffic` is empty."""
    config = text_format.Parse(text, pb.ModelConfig())
    set_traffic(config, traffic)
    return config_text(config)


def set_traffic(config: pb.ModelConfig, traffic: str) -> None:
    """Let a configuration divide requests so."""
    if traffic:
        config.parameters[PARAMETER].string_value = traffic
    elif PARAMETER in config.parameters:
        del config.parameters[PARAMETER]


def _sticky(settings: Rollout | None) -> tuple[Sticky, ...]:
    keys = settings.sticky if settings is not None else ()
    return tuple(Sticky(header=(key.header or "").lower(), parameter=key.parameter or "") for key in keys)


def _shadow(rollout: MemberRollout, settings: Rollout | None) -> Shadow | None:
    """Return the mirroring that the machine asks for, with the tolerances of the spec."""
    share, candidate = rollout.action.shadow, rollout.candidate
    if not share or candidate is None or settings is None or settings.shadow is None:
        return None
    return Shadow(candidate.spec.default_version, share, tuple(map(_tolerance, settings.shadow.tolerances)))


def _tolerance(declared: DeclaredTolerance) -> OutputTolerance:
    agreement = declared.top1_agreement
    return OutputTolerance(
        declared.output,
        declared.absolute or 0.0,
        declared.relative or 0.0,
        agreement / THOUSANDTHS if agreement is not None else None,
    )


def longest_traffic(settings: Rollout | None) -> str:
    """Return the longest text of the parameter that a rollout may get; empty for a member without one."""
    if not is_staged(settings) or settings is None:
        return ""
    shadow = settings.shadow
    return traffic_text(
        VersionTraffic(
            weights={_VERSION - 1: MILLIONTHS, _VERSION: MILLIONTHS},
            sticky=_sticky(settings),
            shadow=Shadow(_VERSION, MILLIONTHS, tuple(map(_tolerance, shadow.tolerances)))
            if shadow is not None
            else None,
        )
    )
