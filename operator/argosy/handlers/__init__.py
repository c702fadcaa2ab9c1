"""kopf's handlers: each validates what it is told, delegates, and reports. The only importer of kopf.

What may live here: registrations with kopf, how kopf is run and logs in. What a resource leads to is the controller's.
"""
