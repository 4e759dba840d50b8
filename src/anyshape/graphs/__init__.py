"""Sizes inside an ONNX graph: where they can be read, and how conditions on them are computed.

Files, in the order in which data flows:

    size_places  from which axes of the inputs the dims can be read
    arithmetic   expressions and conditions -> ONNX nodes
    needs        custom nodes of a model, and the bytes of its tensors
"""
