"""The user's module: its lines, its state, its flat form, its own operators.

Files, in the order in which data flows:

    callables            whatever the user passes as a model -> torch.nn.Module
    search_memo          what a search through a module's code found, kept while an export runs
    user_code            the user's functions behind a module, the numbers in them, which line is running or raised
    line_trace           run a call and visit each executed line of the user's code
    watched_comparisons  the numbers that the user's code compares in one call, and those in keys that it looks up
    unfollowed_uses      uses of sizes that no arithmetic follows: as a text, a key, an index of a table
    raised_errors        why a call raised: the operation, the tensor, the layer
    state                take a module's state once, restore it before every call
    kept_tensors         the values of a module's tensors, put back after a call
    reach                what the user's code can keep outside its module, and in lists, sets, dicts and `__slots__`
    slots                the values that a module keeps between calls, each with a path
    structural_copy      the copy of the module on which an export works
    module_forms         the module on a flat list of tensors, with its state as an argument, with another line
    call_limits          limits on calls of the user's code: time, memory, signals
    registered           `anyshape.translation`: the user's operators in ONNX
"""
