"""The parts of the specs of models and ensembles."""
