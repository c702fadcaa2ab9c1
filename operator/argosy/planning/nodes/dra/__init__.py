"""Devices that DRA drivers publish in ResourceSlices (`resource.k8s.io/v1`), as GPUs of nodes."""
