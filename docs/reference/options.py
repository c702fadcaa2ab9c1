"""The options of `spec.engine`, from the builders' tables."""

from collections.abc import Iterator, Mapping

from docs.reference.resources import NOTE

from argosy_agent.contract.engine_options.checks import TABLES
from argosy_agent.contract.engine_options.option import Kind, Option
from argosy_agent.contract.engine_options.precisions import PRECISIONS

_INTRODUCTION = """
`spec.engine.options` takes a builder's own options by its own names. They are checked when a manifest is applied: an
unknown name, a wrong value or a contradiction is reported at its path, with what to do.
[Builders](../explanation/builders.md) says what each builder does.

| builder | precisions |
|---|---|
"""
_GPUS = """
Not every GPU has every precision: tf32 and bf16 need compute capability 8.0, fp8 8.9, fp4 10.0; TensorRT-LLM needs
8.0 for anything, and makes no engines of int8 or int4 for 10.x and 11.x. A precision below 16 bits that finds its
ranges in data needs `calibration` (of TensorRT-LLM: fp8, fp4, int8 and int4 except `int8_wo` and `int4_wo`, and
`kv_cache_dtype`).
"""
_NAMES = {
    "tensorrt_llm": (
        "An engine, by TensorRT-LLM 1.2. Names are those of `trtllm-build`, of `quantize_and_export` and of Triton's "
        "backend; the last of them, from `cuda_graph_mode` on, are read by the server: changing them builds nothing."
    ),
    "tensorrt_llm pytorch": (
        "The engine-less path (`backend: pytorch`): a checkpoint, quantized where requested. Names are those of "
        "`tensorrt_llm.LLM`."
    ),
    "tensorrt": "Names are those of `IBuilderConfig`.",
    "onnxruntime": "Names are those of `SessionOptions`, `quantize_static` and `quantize_dynamic`.",
    "aotinductor": "Names are those of `torch._inductor.config`, and of `torch.export`.",
}
_HEADER = "| option | value | default | meaning |\n|---|---|---|---|\n"


def options_page() -> str:
    """Return the page of all builders' options."""
    precisions = "".join(f"| `{builder}` | {', '.join(names)} |\n" for builder, names in PRECISIONS.items())
    sections = "".join(map(_section, TABLES))
    note = NOTE.format(source="runtime/argosy_agent/contract/engine_options")
    return f"# Engine options\n\n{note}{_INTRODUCTION}{precisions}{_GPUS}{sections}"


def _section(builder: str) -> str:
    return f"\n## `{builder}`\n\n{_NAMES[builder]}\n\n{_HEADER}{''.join(_rows(TABLES[builder]))}"


def _rows(table: Mapping[str, Option]) -> Iterator[str]:
    """Yield a line for each option; the fields of a map follow it."""
    for name, option in table.items():
        yield _row(name, option)
        if option.kind is Kind.MAP:
            yield from (_row(f"{name}.{inner}", field) for inner, field in option.fields.items())


def _row(name: str, option: Option) -> str:
    default = str(option.default).lower() if isinstance(option.default, bool) else str(option.default)
    values = option.values() + (", null" if option.nullable else "")
    return f"| `{name}` | {values} | {default or 'unset'} | {option.description} |\n"
