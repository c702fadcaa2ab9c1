"""The response cache in front of a version: requests that were answered before do not reach it."""
