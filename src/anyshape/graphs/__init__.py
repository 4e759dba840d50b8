"""Sizes inside an ONNX graph: where they can be read, and how conditions on them are computed.

Files, in the order in which data flows:

    size_places  from which axes of the inputs the dims can be read; custom nodes, bytes of tensors
    arithmetic   expressions and conditions -> ONNX nodes
"""
