from .llm import Llm


class LLM(Llm):
    engines = True
