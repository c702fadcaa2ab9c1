"""The connection to an API server, by the kubernetes package's asyncio client. Its only importer.

What may live here: whom we talk to and as whom, requests on plain objects, watches' events, what errors become, which
kinds there are and which versions an API server offers. Nothing is remembered of objects.
"""
