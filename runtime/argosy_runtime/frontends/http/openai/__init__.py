"""OpenAI's API over HTTP: the endpoints under /v1."""
