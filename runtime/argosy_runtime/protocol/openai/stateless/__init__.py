"""OpenAI's responses, without a state of the server.

`conversion`: a response as a chat; `output`: the items that a model writes; `answers`: responses as one object or as
events.
"""
