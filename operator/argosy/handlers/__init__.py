"""kopf's handlers: each validates, delegates, and reports. The only importer of kopf.

What may live here: registrations with kopf, and how kopf runs and logs in. What a resource must be is the API's to say.
"""
