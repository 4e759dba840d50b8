"""Stage: captured programs -> an ONNX model in the user's names."""
