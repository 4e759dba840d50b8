"""Sizes inside an ONNX graph: where they can be read, and how conditions on them are computed."""
