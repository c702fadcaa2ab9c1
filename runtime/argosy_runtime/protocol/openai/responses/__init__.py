"""Answers: whole ones and streams of events, made of what models generate piece by piece."""
