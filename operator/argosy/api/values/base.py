"""The base of every model, and rules that span fields.

A model lists its `rules`. A rule names the fields that it reads, so that it also runs when other fields are invalid:
all errors of a manifest are reported at once. A rule may have the same check in CEL, for the CRD.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self, get_args

from pydantic import (
    AllowInfNan,
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    Strict,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic_core import InitErrorDetails, PydanticCustomError
from pydantic_core.core_schema import ErrorType

_CORE_ERRORS = frozenset(get_args(ErrorType)) - {"value_error", "assertion_error"}

MAX_EXACT = 2**53 - 1
"""The largest integer that JSON numbers, and so CRDs, represent exactly."""
Int = Annotated[int, Strict()]
"""A whole number; the text "3" is none."""
Number = Annotated[float, Strict(), AllowInfNan(False)]
"""A finite number; the text "3" is none."""
Flag = Annotated[bool, Strict()]
"""true or false; the text "yes" is neither."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A broken rule: what to do about it, and the path relative to the rule's model.

    `reason` is that of the condition Valid; if it is empty, the path decides.
    """

    message: str
    path: tuple[str | int, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A check over several fields of one model.

    `reads`: the attributes that it reads; the check is skipped if one of them is invalid. `cel`: the same check for the
    API server, where true means valid; `says`: its message there.
    """

    reads: tuple[str, ...]
    check: Callable[[Any], Iterable[Fault]]
    cel: str = ""
    says: str = ""


class FrozenModel(BaseModel):
    """A frozen part of a resource, with fields in camelCase in manifests. Unknown fields are rejected."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        protected_namespaces=(),
    )
    rules: ClassVar[tuple[Rule, ...]] = ()


class ApiModel(FrozenModel):
    """A part of a resource that people write. All of its errors are reported together."""

    @model_validator(mode="wrap")
    @classmethod
    def _report_everything(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Validate the fields, then the rules, and raise all errors together.

        A field that is null counts as left out, since API servers drop it.
        """
        if isinstance(data, dict):
            data = {name: value for name, value in data.items() if value is not None or name not in _names(cls)}
        try:
            model = handler(data)
        except ValidationError as error:
            if not isinstance(data, dict):
                raise
            wrong = {str(detail["loc"][0]) for detail in error.errors() if detail["loc"]}
            faults = _broken(cls, _partial(cls, data, wrong))
            raise _together(cls, error, faults) from None
        faults = _broken(cls, model)
        if faults:
            raise _together(cls, None, faults)
        return model


def _names(cls: type[ApiModel]) -> set[str]:
    """Return the names of its fields in manifests and in code."""
    return {*cls.model_fields, *(field.alias for field in cls.model_fields.values() if field.alias)}


def _broken(cls: type[ApiModel], model: ApiModel) -> list[Fault]:
    present = model.__dict__.keys()
    return [fault for rule in cls.rules if present >= set(rule.reads) for fault in rule.check(model)]


def _partial(cls: type[ApiModel], data: dict[str, Any], wrong: set[str]) -> ApiModel:
    """Return the model with its valid fields only. The others are absent and have no default."""
    good: dict[str, Any] = {}
    for name, field in cls.model_fields.items():
        names = {name, field.alias or name}
        if names & wrong:
            continue
        present = [key for key in names if key in data]
        if present:
            good[name] = _field_adapter(field).validate_python(data[present[0]])
        elif not field.is_required():
            good[name] = field.get_default(call_default_factory=True, validated_data={})
    model = cls.model_construct()
    model.__dict__.clear()
    model.__dict__.update(good)
    return model


def _field_adapter(field: FieldInfo) -> TypeAdapter[Any]:
    annotation: Any = field.annotation
    for constraint in field.metadata:
        annotation = Annotated[annotation, constraint]
    return TypeAdapter(annotation)


def _together(cls: type[ApiModel], error: ValidationError | None, faults: list[Fault]) -> ValidationError:
    details: list[InitErrorDetails] = []
    for detail in error.errors(include_url=False) if error else []:
        kind: str | PydanticCustomError = detail["type"]
        context = detail.get("ctx", {})
        if kind not in _CORE_ERRORS:
            kind = PydanticCustomError("value", "{message}", {"message": _plain(detail["msg"], context)})
            context = {}
        details.append(InitErrorDetails(type=kind, loc=detail["loc"], input=detail["input"], ctx=context))
    for fault in faults:
        custom = PydanticCustomError("rule", "{message}", {"message": fault.message})
        details.append(InitErrorDetails(type=custom, loc=fault.path, input=None))
    return ValidationError.from_exception_data(cls.__name__, details)


def _plain(message: str, context: dict[str, Any]) -> str:
    return str(context["error"]) if "error" in context else message


def in_order() -> Rule:
    """Return the rule that `min` is at most `max` if both are set."""

    def check(part: ApiModel) -> Iterator[Fault]:
        least, most = getattr(part, "min"), getattr(part, "max")  # noqa: B009  # not every part has them
        if least is not None and most is not None and most < least:
            yield Fault(f"is {most:g}, less than min {least:g}; raise it or lower min", ("max",))

    return Rule(
        ("min", "max"),
        check,
        cel="!has(self.min) || !has(self.max) || self.min <= self.max",
        says="max is at least min",
    )
