"""Inference over gRPC: ModelInfer messages, as protobuf has them and cut by hand."""
