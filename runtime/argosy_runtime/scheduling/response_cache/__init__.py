"""The response cache: answers kept by their requests, for models that always answer alike."""
