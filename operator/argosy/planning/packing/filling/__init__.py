"""Filling: replicas get places next to those that stay, together by the search, or one by one."""
