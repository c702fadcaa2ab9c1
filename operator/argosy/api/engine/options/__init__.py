"""What `spec.engine.options` may say: a table a builder, and the rules between options. Pure.

`option` is what one entry of a table is; `tensorrt_llm`, `tensorrt`, `onnxruntime` and `aotinductor` are the tables,
by the builders' own names; `precisions` says which arithmetic a builder makes, and on which GPUs; `checks` holds all of
it against an engine. A builder of the runtime keeps its own list of what it takes; a test holds both lists equal.
"""
