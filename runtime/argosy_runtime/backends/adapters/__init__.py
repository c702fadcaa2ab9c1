"""LoRA adapters for all backends of language models that take them: their files, and those that requests may name.

What may live here: checks of files that need no framework (`files`, `safetensors`), and adapters by name (`named`).
"""
