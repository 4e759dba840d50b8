"""Stage: captured programs -> an ONNX model in the user's names.

Files, in the order in which data flows:

    registry          torch.onnx's operator library, with our translations before it
    operator_library  torch.onnx's library, with signatures only of what is needed
    custom            the user's own translations, as that registry takes them
    inlining          custom operators without a translation -> their Python bodies
    known_values      what is known of an fx node without running it
    fewer_nodes       passes on the captured program before translation
    private_writes    operators that write in place -> operators that return
    decomposed_nodes  decompose single operators, in place
    program           translate one region; join regions under If
    operators/        translations of ATen operators
    floats            floats as torch computes them
    whole_numbers     sizes, exact in 64 bits
    wider_types       integers and booleans that ONNX has no kernels for
    loops             marks of loops -> ONNX Loop
    bodies            a model's nodes as a subgraph, weights stored once
    decisions         a tree of decisions on values -> If and Loop
    names             names and source lines in the file
    opset_choice      the opsets that are written
    opsets            opset 18 -> the user's
    opset17           18 -> 17
    opset_forms       forms of operators in older opsets
    legacy            the last rung: torch's TorchScript exporter
"""
