"""Chats: messages in OpenAI's form, the prompt that a template makes of them, and the end of one that makes none."""

from .template import LONGEST_SECONDS, TRUST_REQUESTS, Chat, ChatTemplate

__all__ = ["LONGEST_SECONDS", "TRUST_REQUESTS", "Chat", "ChatTemplate"]
