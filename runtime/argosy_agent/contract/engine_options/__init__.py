"""The options that `spec.engine.options` may have: a table for each builder, and the rules between options. Pure.

The operator checks manifests with it, and the builder that receives a request checks that with the same tables.
`option`: one entry of a table. `tensorrt_llm`, `tensorrt`, `onnxruntime` and `aotinductor`: the tables, by builder.
`precisions`: the precisions of each builder, and the GPUs that have them. `checks`: an engine checked against all of
it.
"""
