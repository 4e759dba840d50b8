"""What stands in for parts of Python, numpy and torch while a module runs for us.

    while any export runs              warnings, logging and stderr of libraries                 quiet
                                       `min`, `max`, `math.pow` that torch.export replaces       patching
    while a module is captured         `int`, `len`, `min`, `math`, numpy in the user's code   open_numbers, open_arrays
                                       functions behind `lru_cache`                              patching
                                       values of small tensors of Python numbers                 small_constants
    while it is asked for values       `bool()`, `int()`, `.item()` of tensors                   questions, python_numbers
    while conditions are looked for    answers of conditions on sizes                            needless_conditions
    while it runs under one of our     torch.cond, while_loop, scan, map as plain Python         control_flow
    modes                              torch's fused encoder layer, switched off                 patching

A replacement holds inside a `with` block, for the thread that exports, and ends with the block, also by an error: another
thread gets the original at all times (docs/explanation/threads.md).
"""
