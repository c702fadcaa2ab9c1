"""A model of BERT's shape on one GPU: Argosy, a bare torch loop and Triton's Python backend."""
