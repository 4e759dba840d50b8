"""Stage: captured programs -> an ONNX model in the user's names.

Files, in the order in which data flows:

    registry          torch.onnx's operator library, with our translations before it
    legacy            torch.onnx's library, with signatures only of what is needed; the last rung: torch's TorchScript exporter
    custom            the user's own operators: their translations, or their Python bodies
    known_values      what is known of an fx node without running it: its values, and whether it gives new memory
    fewer_nodes       passes on the captured program before translation
    private_writes    operators that write in place -> operators that return
    decomposed_nodes  decompose single operators, in place
    alike_programs    regions whose programs are alike as one
    program           translate one region; join regions under If, weights stored once
    operators/        translations of ATen operators
    floats            floats as torch computes them
    whole_numbers     sizes, exact in 64 bits
    lacking_forms     opset 18 -> opset 17; integers and booleans for which onnxruntime has no kernels
    exact_quotients   quotients and remainders of integers by open divisors; NodeWriter: nodes in place of one
    exact_int64       integers that onnxruntime computes inexactly, with operators that are exact
    asserted_values   assertions about values -> nodes that fail
    loops             marks of loops -> ONNX Loop
    decisions         a tree of decisions on values -> If and Loop
    names             names and source lines in the file
    opsets            the opsets that are written; opset 18 -> the user's
    opset_forms       forms of operators in older opsets
"""
