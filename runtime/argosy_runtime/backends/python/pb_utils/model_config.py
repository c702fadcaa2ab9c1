"""`pb_utils.ModelConfig`: what `auto_complete_config` reads and fills in; finding parts of a configuration by name."""

import json
from typing import Any

_INPUT_PROPERTIES = ("name", "data_type", "dims", "optional")
_OUTPUT_PROPERTIES = ("name", "data_type", "dims")
_REQUIRED = ("name", "data_type", "dims")


class ModelConfig:
    """A model's configuration while it is being completed.

    Every method raises ValueError on a contradiction.
    """

    def __init__(self, model_config: str) -> None:
        self._model_config: dict[str, Any] = json.loads(model_config)

    def as_dict(self) -> dict[str, Any]:
        """Return the configuration in its JSON form, to read."""
        return self._model_config

    def set_max_batch_size(self, max_batch_size: int) -> None:
        """Set the largest batch that the model takes, 0 for a model without a batch dimension."""
        configured = self._model_config["max_batch_size"]
        if configured > max_batch_size:
            raise ValueError(
                f"configuration specified max_batch_size {configured}, but in auto-complete-config function "
                f"for model '{self._name}' specified max_batch_size {max_batch_size}"
            )
        self._model_config["max_batch_size"] = max_batch_size

    def set_dynamic_batching(self) -> None:
        """Batch requests dynamically, unless the configuration already says so."""
        for other in ("sequence_batching", "ensemble_scheduling"):
            if other in self._model_config:
                raise ValueError(
                    f"Configuration specified scheduling_choice as '{other}', but auto-complete-config "
                    f"function "
                    f"for model '{self._name}' tries to set scheduling_choice as 'dynamic_batching'"
                )
        self._model_config.setdefault("dynamic_batching", {})

    def add_input(self, input: dict[str, Any]) -> None:  # noqa: A002 - Triton's name for it
        """Add an input: name, data_type (TYPE_…), dims without the batch, and perhaps optional."""
        self._add("input", input, _INPUT_PROPERTIES)

    def add_output(self, output: dict[str, Any]) -> None:
        """Add an output: name, data_type (TYPE_…) and dims without the batch."""
        self._add("output", output, _OUTPUT_PROPERTIES)

    def set_model_transaction_policy(self, transaction_policy_dict: dict[str, Any]) -> None:
        """Set whether the model is decoupled: {"decoupled": bool}."""
        if set(transaction_policy_dict) - {"decoupled"}:
            raise ValueError(
                "model transaction property in auto-complete-config function "
                f"for model '{self._name}' contains property other than 'decoupled'."
            )
        policy = self._model_config.setdefault("model_transaction_policy", {})
        if "decoupled" not in transaction_policy_dict:
            return
        desired = transaction_policy_dict["decoupled"]
        if policy.get("decoupled", desired) != desired:
            raise ValueError(
                f"trying to change decoupled property in auto-complete-config for model '{self._name}', "
                f"which is already set to '{policy['decoupled']}'."
            )
        policy["decoupled"] = desired

    @property
    def _name(self) -> str:
        return str(self._model_config["name"])

    def _add(self, side: str, tensor: dict[str, Any], allowed: tuple[str, ...]) -> None:
        self._check_properties(side, tensor, allowed)
        for present in self._model_config[side]:
            if present["name"] == tensor["name"]:
                self._check_agrees(side, present, tensor)
                present.update(tensor)
                return
        self._model_config[side].append(tensor)

    def _check_properties(self, side: str, tensor: dict[str, Any], allowed: tuple[str, ...]) -> None:
        where = f"in auto-complete-config function for model '{self._name}'"
        label = f"{side} '{tensor['name']}'" if "name" in tensor else side
        if set(tensor) - set(allowed):
            *head, last = (f"'{name}'" for name in allowed)
            raise ValueError(f"{label} {where} contains property other than {', '.join(head)} and {last}.")
        for name in _REQUIRED:
            if name not in tensor:
                raise ValueError(f"{label} {where} is missing '{name}' property.")

    def _check_agrees(self, side: str, present: dict[str, Any], tensor: dict[str, Any]) -> None:
        name, datatype = tensor["name"], present["data_type"]
        if datatype not in ("TYPE_INVALID", tensor["data_type"]):
            raise ValueError(
                f"unable to load model '{self._name}', configuration expects datatype {datatype} "
                f"for {side} '{name}', model provides {tensor['data_type']}"
            )
        for key, configured in (("dims", present["dims"]), ("optional", present.get("optional"))):
            desired = tensor.get(key, configured)
            is_set = configured is not None and configured != []  # dims that are empty are open, False is a value
            if is_set and list_or_flag(configured) != list_or_flag(desired):
                raise ValueError(
                    f"model '{self._name}', tensor '{name}': the model expects {key} {desired} "
                    f"but the model configuration specifies {key} {configured}"
                )


def list_or_flag(value: Any) -> Any:
    """Return dims as a list: a tuple means the same."""
    return list(value) if isinstance(value, (list, tuple)) else value


def get_input_config_by_name(model_config: dict[str, Any], name: str) -> dict[str, Any] | None:
    """Return the input's part of a configuration in JSON form, None where it has none."""
    return next((tensor for tensor in model_config.get("input", ()) if tensor["name"] == name), None)


def get_output_config_by_name(model_config: dict[str, Any], name: str) -> dict[str, Any] | None:
    """Return the output's part of a configuration in JSON form, None where it has none."""
    return next((tensor for tensor in model_config.get("output", ()) if tensor["name"] == name), None)


def using_decoupled_model_transaction_policy(model_config: dict[str, Any]) -> bool:
    """Return whether the model may send any number of responses to a request."""
    return bool(model_config.get("model_transaction_policy", {}).get("decoupled", False))
