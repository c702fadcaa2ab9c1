"""The meaning of an ensemble: its graph, whether its models fit, its streams, and ensembles within ensembles."""
