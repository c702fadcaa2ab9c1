"""What backends share whose engine gives tokens alone: from a request to the engine's work, from tokens to responses.

What may live here: reading requests (`requests`), what a model can take and a request asks for (`generation`), defaults
of a model's files (`defaults`), tensors (`autofill`), and what becomes of an engine's steps (`choices`, `answers`). No
framework, no engine.
"""
