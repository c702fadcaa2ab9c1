"""Requests that hypothesis makes, sent to the real Triton and to Argosy at the same time.

`models` says what is asked, `requests` makes requests in the four forms and spoils them, `comparison` says where
answers may differ.
"""
