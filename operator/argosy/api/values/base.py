"""The base of every model, and rules that span fields.

A model lists its `rules`. Each rule names the fields it reads, so that it still runs when some other field is
wrong: all errors of a manifest are found at once. A rule may carry the same check in CEL, for the CRD.
"""

from collections.abc import Callable, Iterable
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

MAX_WHOLE = 2**53 - 1
"""The largest bound that JSON's numbers, and so a CRD, hold exactly."""
Int = Annotated[int, Strict()]
"""A whole number; the text "3" is none."""
Number = Annotated[float, Strict(), AllowInfNan(False)]
"""A finite number; the text "3" is none."""
Flag = Annotated[bool, Strict()]
"""true or false; the text "yes" is neither."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One broken rule: where, relative to the model whose rule it is, and what to do about it.

    `reason` is that of the condition Valid; empty says what the path says.
    """

    message: str
    path: tuple[str | int, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A check over several fields of one model.

    `reads` are the attributes it looks at; it is skipped when one of them is wrong by itself. `cel` is the
    same check for the API server (true means valid), and `says` its message there.
    """

    reads: tuple[str, ...]
    check: Callable[[Any], Iterable[Fault]]
    cel: str = ""
    says: str = ""


class FrozenModel(BaseModel):
    """A frozen part of a resource: camelCase outside, snake_case inside, unknown fields refused."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        protected_namespaces=(),
    )
    rules: ClassVar[tuple[Rule, ...]] = ()


class ApiModel(FrozenModel):
    """A part of a resource that people write: everything that is wrong with it is said together."""

    @model_validator(mode="wrap")
    @classmethod
    def _report_everything(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Validate the fields, then the rules, and raise all that is wrong together.

        A field that is null is as if left out: API servers drop it.
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
    """What its fields are called, outside and inside."""
    return {*cls.model_fields, *(field.alias for field in cls.model_fields.values() if field.alias)}


def _broken(cls: type[ApiModel], model: ApiModel) -> list[Fault]:
    known = model.__dict__.keys()
    return [fault for rule in cls.rules if known >= set(rule.reads) for fault in rule.check(model)]


def _partial(cls: type[ApiModel], data: dict[str, Any], wrong: set[str]) -> ApiModel:
    """The model with only the fields that are right by themselves; the others are absent, not defaulted."""
    good: dict[str, Any] = {}
    for name, field in cls.model_fields.items():
        given = {name, field.alias or name}
        if given & wrong:
            continue
        present = [key for key in given if key in data]
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
    for known in error.errors(include_url=False) if error else []:
        kind: str | PydanticCustomError = known["type"]
        context = known.get("ctx", {})
        if kind not in _CORE_ERRORS:
            kind = PydanticCustomError("value", "{message}", {"message": _plain(known["msg"], context)})
            context = {}
        details.append(InitErrorDetails(type=kind, loc=known["loc"], input=known["input"], ctx=context))
    for fault in faults:
        custom = PydanticCustomError("rule", "{message}", {"message": fault.message})
        details.append(InitErrorDetails(type=custom, loc=fault.path, input=None))
    return ValidationError.from_exception_data(cls.__name__, details)


def _plain(message: str, context: dict[str, Any]) -> str:
    return str(context["error"]) if "error" in context else message
