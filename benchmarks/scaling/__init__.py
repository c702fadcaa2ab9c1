"""Argosy's scaling next to HPA, KEDA and Knative's KPA, on the same traces in the same simulated fleet."""
