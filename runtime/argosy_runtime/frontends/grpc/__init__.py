"""The gRPC front end: GRPCInferenceService and grpc.health.v1."""
