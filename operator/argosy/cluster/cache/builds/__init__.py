"""Cached Jobs, Pods and reports of builds."""
