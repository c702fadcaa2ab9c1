"""The connection to an API server, by the kubernetes package's asyncio client. Its only importer.

What may live here: credentials, requests on plain objects, watches' events, errors, kinds, and which versions an API
server supports. No object is cached.
"""
