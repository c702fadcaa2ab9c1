"""The ports of SageMaker and Vertex AI: paths of their own for what the V2 protocol has."""
