"""The models that generated requests are for: of each scheduler and of every datatype."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Input:
    """An input by its configuration: -1 stands for any size."""

    name: str
    datatype: str
    dims: tuple[int, ...]
    optional: bool = False


@dataclass(frozen=True)
class Model:
    """A model of tests/models. Without `decoupled` it answers each request once."""

    name: str
    inputs: tuple[Input, ...]
    outputs: tuple[str, ...]
    batched: bool = True
    decoupled: bool = False
    sequence: bool = False


_INTEGERS = tuple(f"{sign}INT{bits}" for sign in ("U", "") for bits in (8, 16, 32, 64))
_TYPES = ("BOOL", *_INTEGERS, "FP16", "FP32", "FP64", "BYTES")
_NAMES = {name: "STRING" if name == "BYTES" else name for name in _TYPES}
_EVERY_INPUT = tuple(Input(f"IN_{_NAMES[name]}", name, (-1,), optional=True) for name in _TYPES)
MODELS = (
    Model("identity", (Input("INPUT0", "FP32", (-1,)),), ("OUTPUT0",)),
    Model("every_type", _EVERY_INPUT, tuple(f"OUT_{_NAMES[name]}" for name in _TYPES), batched=False),
    Model("bytes_identity", (Input("INPUT0", "BYTES", (-1,)),), ("OUTPUT0",)),
    Model("add_sub", (Input("INPUT0", "INT32", (16,)), Input("INPUT1", "INT32", (16,))), ("OUTPUT0", "OUTPUT1")),
    Model(
        "unbatched",
        (Input("MATRIX", "FP32", (2, 3)), Input("FACTOR", "FP64", (1,))),
        ("OUT", "SHAPE"),
        batched=False,
    ),
    Model("reshaped", (Input("IN", "FP32", (1,)),), ("OUT", "RANK")),
    Model("texts", tuple(Input(name, "BYTES", (-1,)) for name in ("FIRST", "SECOND", "THIRD")), ("OUT",)),
    Model(
        "text",
        (Input("text_input", "BYTES", (1,)), Input("repetitions", "INT32", (1,), optional=True)),
        ("text_output", "length"),
    ),
    Model("classifier", (Input("IN", "FP32", (4,)),), ("SCORES", "RANKS")),
    Model("parameters", (Input("IN", "FP32", (1,)),), ("PARAMETERS", "REQUEST"), batched=False),
    Model("chain", (Input("INPUT0", "FP32", (-1,)),), ("OUTPUT0",)),
    Model("diamond", (Input("IN", "INT32", (16,)),), ("SUM", "DIFFERENCE")),
    Model("sequence_sum", (Input("IN", "INT32", (1,)),), ("SUM",), sequence=True),
    Model(
        "repeat",
        (Input("IN", "INT32", (-1,)), Input("DELAY_MS", "UINT32", (1,), optional=True)),
        ("OUT", "IDX"),
        batched=False,
        decoupled=True,
    ),
)
