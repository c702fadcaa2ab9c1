"""Which requests are traced, and how: settings for all models, and for single models, that clients may change.

A model's own settings override the global ones field by field, and these the server's flags. A setting is never
changed: another one replaces it, and what was traced under the old one is completed under it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from argosy_runtime.errors import invalid
from argosy_runtime.traces import TraceLevel

from .options import TraceMode, TraceOptions

Changes = Mapping[str, int | None]
"""New values of level, rate, count, log_frequency; None takes a value back, so that the fallback's counts."""


@dataclass(eq=False, slots=True)
class TraceSetting:
    """The settings of a model, or of all. `own` are the fields that do not follow the fallback.

    `remaining` is the number of further traces, -1 without a limit. `open` counts records that are not complete, and
    `collected` those that are; `unsaved` of these are in no complete file yet.
    """

    options: TraceOptions
    own: frozenset[str] = frozenset()
    remaining: int = field(init=False)
    sampled: int = 0
    open: int = 0
    collected: int = 0
    unsaved: int = 0
    replaced: bool = False

    def __post_init__(self) -> None:
        self.remaining = self.options.count

    @property
    def current(self) -> TraceOptions:
        """The options, with the number of further traces in place of the count."""
        return replace(self.options, count=self.remaining)

    @property
    def problem(self) -> str:
        """Return why nothing can be traced, "" where something can."""
        if not self.options.level:
            return "tracing is disabled"
        if not self.options.rate:
            return "sample rate must be non-zero"
        if self.options.mode is TraceMode.TRITON and not self.options.file:
            return "trace file name is not given"
        return ""

    @property
    def traces(self) -> bool:
        """Whether a further request may be traced."""
        return not self.problem and self.remaining != 0

    def sample(self, forced: bool = False) -> bool:
        """Count a request, and return whether it is traced: one in `rate`, and each that is `forced` to."""
        chosen = False
        if self.options.rate and (self.traces or forced):
            self.sampled += 1
            chosen = self.sampled % self.options.rate == 0 and self.remaining != 0
            if chosen and self.remaining > 0:
                self.remaining -= 1
        if chosen or forced:
            self.open += 1
            return True
        return False

    def collect(self) -> bool:
        """Count a record that is complete. Return whether the unsaved ones are a file of their own now."""
        self.open -= 1
        self.collected += 1
        self.unsaved += 1
        frequency = self.options.log_frequency
        full = bool(frequency) and self.unsaved >= frequency
        if full or (self.remaining == 0 and self.collected == self.sampled):
            self.unsaved = 0
            return True
        return False


class TraceSettings:
    """The settings of one server. `replaced` is called with each setting that no longer applies."""

    def __init__(self, options: TraceOptions, replaced: Callable[[TraceSetting], None]) -> None:
        self._default = TraceSetting(options)
        self._global = TraceSetting(options)
        self._models: dict[str, TraceSetting] = {}
        self._replaced = replaced

    @property
    def active(self) -> bool:
        """Whether the level of any model is not OFF."""
        return any(setting.options.level for setting in self.all)

    @property
    def all(self) -> list[TraceSetting]:
        """The settings that apply now."""
        return [self._global, *self._models.values()]

    def of(self, model: str) -> TraceSetting:
        """Return the setting of a model's requests."""
        return self._models.get(model, self._global) if self._models else self._global

    def change(self, model: str, changes: Changes) -> None:
        """Change the setting of a model, or the global one for "".

        Raises INVALID_ARG where nothing could be traced though the level is not OFF. Settings of models that follow a
        global one are changed after it, up to the first that is refused.
        """
        if model:
            self._change_model(model, changes)
            return
        before, self._global = self._global, _changed(self._global, self._default.options, changes)
        self._replaced(before)
        for name in list(self._models):
            self._change_model(name, {})

    def _change_model(self, model: str, changes: Changes) -> None:
        before = self._models.get(model)
        values = _own_values(before, changes)
        if values:
            self._models[model] = _with(self._global.current, values)
        else:
            self._models.pop(model, None)
        if before is not None:
            self._replaced(before)


def _changed(before: TraceSetting, fallback: TraceOptions, changes: Changes) -> TraceSetting:
    return _with(fallback, _own_values(before, changes))


def _own_values(before: TraceSetting | None, changes: Changes) -> dict[str, int]:
    """Return the fields that do not follow the fallback, with their values."""
    values: dict[str, int] = {}
    if before is not None:
        current = before.current
        values = {name: getattr(current, name) for name in before.own if changes.get(name, 0) is not None}
    return values | {name: value for name, value in changes.items() if value is not None}


def _with(fallback: TraceOptions, values: Mapping[str, int]) -> TraceSetting:
    """Return the setting of a fallback and these values. Raises INVALID_ARG where it is on and can trace nothing."""
    setting = TraceSetting(
        replace(
            fallback,
            level=TraceLevel(values.get("level", fallback.level)),
            rate=values.get("rate", fallback.rate),
            count=values.get("count", fallback.count),
            log_frequency=values.get("log_frequency", fallback.log_frequency),
        ),
        frozenset(values),
    )
    if setting.options.level and not setting.traces:
        raise invalid(f"Attempting to set invalid trace setting :{setting.problem}")
    return setting
