"""OpenAI's API as codecs: JSON of requests → inference requests of language models, their responses → JSON and events.

Requests are declared field by field (`requests/`), with the types and ranges of OpenAI's own client and the extensions
of vLLM's server. A language model is addressed by the tensors of `argosy_runtime.language`.
"""
