"""Autoscalers: the operator's own functions, and others to compare with, written from their documentation."""
