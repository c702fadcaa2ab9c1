"""Rules of a model's variants: of each by itself, of their crossovers, and of how requests are divided among them."""

from collections.abc import Iterator
from itertools import pairwise

from argosy.api.model.modelfields import InferenceModelFields
from argosy.api.model.rollout.rollout import PROVING_FIELDS
from argosy.api.model.variants import SEPARATE_DWELL_MS, Routing, VariantPlacement
from argosy.api.model.variantspecs import variant_path, variant_spec
from argosy.api.values.base import Fault, Rule
from argosy.api.values.quantity import format_duration


def _crossovers(spec: InferenceModelFields) -> Iterator[Fault]:
    """Yield variants that share a name, and crossovers that do not grow."""
    variants = spec.variants
    names: set[str] = set()
    for index, variant in enumerate(variants):
        if variant.name in names:
            yield Fault(f"there are two variants {variant.name!r}; rename one", ("variants", index, "name"))
        names.add(variant.name)
    for (before, one), (index, other) in pairwise(
        (index, variant) for index, variant in enumerate(variants) if variant.max_concurrency is not None
    ):
        if (one.max_concurrency or 0) >= (other.max_concurrency or 0):
            yield Fault(
                f"is {other.max_concurrency}, no more than that of variant {before} ({one.name!r}): list the variants "
                "for the fewest requests in flight first",
                ("variants", index, "maxConcurrency"),
            )
    if variants and variants[-1].max_concurrency is not None:
        yield Fault(
            "the last variant takes all requests beyond the crossover before it; leave it out",
            ("variants", len(variants) - 1, "maxConcurrency"),
        )


def _routing(spec: InferenceModelFields) -> Iterator[Fault]:
    """Yield what has no effect: routing without variants, and what variants with servers of their own do not do."""
    # Values, since a resource that is stored and read again has all fields.
    routing, default = spec.routing, Routing()
    if not spec.variants:
        if routing != default:
            yield Fault("divides requests among variants: list some in spec.variants, or leave it out", ("routing",))
        return
    if routing.placement is VariantPlacement.SAME_SERVER:
        return
    if routing.min_dwell != default.min_dwell and routing.min_dwell < SEPARATE_DWELL_MS:
        yield Fault(
            f"is {format_duration(routing.min_dwell)}, and requests change from server to server after "
            f"{format_duration(SEPARATE_DWELL_MS)} at the soonest; set that or more, or leave it out",
            ("routing", "minDwell"),
        )
    if routing.idle_timeout != default.idle_timeout:
        yield Fault(
            "puts variants that share a server to sleep, and with routing.placement Separate none sleeps; leave it out",
            ("routing", "idleTimeout"),
        )


def _separate(spec: InferenceModelFields) -> Iterator[Fault]:
    """Yield what variants with servers of their own cannot have: no server, to which no request could change, and
    adapters.
    """
    if not spec.variants or spec.routing.placement is VariantPlacement.SAME_SERVER:
        return
    message = (
        "is 0, and variants with routing.placement Separate need a server each, so that requests can change from one "
        "to the other; set 1 or more"
    )
    if not spec.least_replicas:
        yield Fault(message, ("minReplicas",))
    if spec.adapters:
        yield Fault(
            "a model whose variants have servers of their own takes no adapters; set routing.placement to SameServer",
            ("adapters",),
        )
    for index, schedule in enumerate(spec.scaling.schedules if spec.scaling is not None else ()):
        if not schedule.min_replicas:
            yield Fault(message, ("scaling", "schedules", index, "minReplicas"))


def _unproven(spec: InferenceModelFields) -> Iterator[Fault]:
    """Yield what proves a new version: requests change from variant to variant, each of which would have two."""
    for name in PROVING_FIELDS if spec.variants and spec.rollout is not None else ():
        if getattr(spec.rollout, name):
            yield Fault(
                "a new version of a model with variants is not proven in steps or in shadow: it takes all requests "
                "once each variant has it. Leave this out, or declare a model for each variant, with a rollout of its "
                "own",
                ("rollout", name),
            )


def _variants(spec: InferenceModelFields) -> Iterator[Fault]:
    """Yield what is wrong with the spec of a variant, at the variant's own field, and with the model's versions."""
    if not spec.variants:
        return
    if len(spec.versions) > 0:
        yield Fault("a model with variants has one version: set version and storageUri", ("versions",))
    own = {(fault.message, fault.path) for fault in _own_faults(spec)}
    for index, variant in enumerate(spec.variants):
        for fault in _own_faults(variant_spec(spec, variant)):
            if (fault.message, fault.path) not in own:
                yield Fault(fault.message, variant_path(index, variant, fault.path), fault.reason)


def _own_faults(spec: InferenceModelFields) -> Iterator[Fault]:
    for rule in type(spec).rules:
        if "variants" not in rule.reads:
            yield from rule.check(spec)


VARIANT_RULES = (
    Rule(("variants",), _crossovers),
    Rule(("variants", "routing"), _routing),
    Rule(("variants", "routing", "min_replicas", "scaling", "adapters"), _separate),
    Rule(("variants", "rollout"), _unproven),
    # It reads all fields that any rule of a model reads.
    Rule(tuple(InferenceModelFields.model_fields), _variants),
)
