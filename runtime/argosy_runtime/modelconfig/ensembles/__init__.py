"""What an ensemble means: its graph, whether its models fit, its streams, and ensembles within ensembles."""
