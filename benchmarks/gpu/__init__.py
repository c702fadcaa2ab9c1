"""A model of BERT's shape on one GPU: Argosy beside a bare torch loop, and beside Triton's Python backend."""
