"""What replaces parts of Python, numpy and torch while a module runs for us.

What is replaced, and when:

    while any export runs              warnings, logging and stderr of libraries                 turns
                                       thresholds of the garbage collector (for all threads)     turns
                                       `min`, `max`, `math.pow`: torch.export replaces them
                                       everywhere, here for our thread alone                     patching
    ... of a module on a GPU           devices that its code names: they mean the CPU            accelerators
    while it is captured with symbols  `int`, `len`, `min`, `math`, numpy in the user's code     open_numbers, open_arrays
    or its decisions are looked for    `torch`, where numpy is used: functions that take arrays  open_numbers
                                       code objects: both sides of branches that choose numbers  joined_branches
                                       `%` of sizes: what is missing to a multiple               joined_branches
                                       numbers that Python reads from tensors made of sizes      size_tensors
    while a module is captured         functions behind `lru_cache`                              patching
                                       which small tensors have known values (up to 64 numbers)  size_tensors
                                       a check of new entries of torch's fake tensor cache       quick_tracing
                                       stacks and results that torch keeps of each operator      quick_tracing
                                       products and comparisons of sizes: computed once          quick_tracing
                                       quotients of sizes that are rounded: whole ones           whole_quotients
                                       the length of a slice that may end behind its axis        capture/torch_export
                                       the dtype of positions that torch.unique returns          capture/torch_export
                                       a condition on the remainder where pooling divides        capture/torch_export
                                       torch.compile, which does nothing                         control_flow
                                       calls of torch.cond, while_loop, scan, map                control_flow, leaves/lifted
                                       the order of steps in torch's associative_scan            leaves/lifted
                                       `forward` of torch's transformer layers                   leaves/checked
    while its decisions are fixed      `bool()`, `int()`, `.item()` of tensors                   questions, python_numbers
                                       the hash of tensors that are numbers                      python_numbers
                                       torch._check of tensors that are numbers                  value_checks
    while torch.export runs            torch._check and _assert_async of values                  value_checks
                                       `bool()` of conditions on sizes                           needless_conditions
                                       comparisons of sizes for functions that want a bool       decided_conditions
                                       texts of sizes, whose lines are noted                     capture/noted_lines
                                       symbols of sizes that are multiples: 32 times another     quick_tracing
                                       `//` of sizes by floats                                   real_numbers
                                       torch's symbols for sizes, which may be 0                 capture/trace_sizes
                                       torch's setting `backed_size_oblivious`                   capture/torch_export
                                       which sizes are 1 where shapes broadcast, or do not       capture/torch_export
                                       the stack that torch records for a condition              capture/guards
                                       conditions that choose between a view and a copy          capture/layout_conditions
                                       torch.func's transforms, torch.autograd.grad: noted       capture/torch_export
    while programs are translated      how torch.onnx writes Python floats                       translate/floats
                                       torch's setting `backed_size_oblivious`                   translate/registry
                                       conditions on whether an output is a view of another      translate/registry
    in calls that count operators,     torch.cond, while_loop, scan, map as plain Python         control_flow
    run in float64, or find decisions  torch's fused encoder layer, switched off                 patching
                                       functions behind `lru_cache`                              explore/call_counter
    while calls are repeated           setting an attribute of a part is noted                   replay
    while noise is measured            the default dtype                                         verify/float64_copy
    ... without float64                torch's threads, oneDNN kernels (for all threads)         verify/noise

A replacement holds inside a `with` block, for the thread that exports, and ends with the block, also by an error. Another
thread gets the original (docs/explanation/threads.md), with two exceptions: the rows "for all threads", and code objects. Other
threads run the changed code of the user's functions too (calls of `int` and `len`, joined branches); what it calls asks whether
the running thread captures a module, and else does what the user wrote. Settings of torch hold for one thread by themselves
(`_config.patch`, torch 2.13).

Files, in the order in which data flows:

    turns                one export at a time on a copy of the module; libraries quiet; fewer garbage collections
    patching             replace names for the exporting thread, restore them afterwards
    accelerators         devices that the user's code names mean the CPU, where the copy of the module is
    call_sites           redirect calls of builtins, and of torch functions that take or return numpy arrays
    replay               calls of a module from its first state, under chosen random numbers or without any
    operation_counts     count the operators and elements of a call on fake tensors
    size_choices         one expression for a number that remainders of sizes choose
    branch_syntax        the syntax of branches whose sides only compute numbers, pad, resize, slice or copy
    joined_branches      functions that run both sides of these branches
    decided_conditions   conditions on sizes that are handed to functions that take bools alone
    open_ranges          range() whose step is an open size
    open_numbers         `int`, `len`, `math` in the user's code on open sizes
    real_numbers         floats that stay open: functions of math on sizes, floats read from tensors
    array_functions      numpy's functions that torch._numpy lacks, on open sizes
    open_arrays          numpy's arrays and functions on open sizes
    tensor_arithmetic    what torch functions compute on small tensors of sizes, element by element
    size_tensors         small tensors: which have known values; those computed from sizes alone, from which Python reads sizes
    quick_tracing        less of what torch keeps of each operator of a trace; sizes that are multiples, as 32 times a symbol
    whole_quotients      rounded quotients of sizes as terms of integers
    int_arithmetic       Python's arithmetic of ints and floats, on tensors without axes
    python_numbers       ints and floats that Python read from tensors, kept as tensors
    selections           tensors whose length depends on values: what a mask selects, slices between tensors
    value_checks         torch._check of values, recorded with its words
    questions            values that Python reads from tensors (`if x.sum() > 0`, `int(n)`), decided by a script
    fixed_decisions      a module with these decisions fixed, and its next question as a module
    needless_conditions  conditions on sizes whose truth changes nothing
    control_flow         torch.cond, while_loop, scan and map as plain Python, and what they refuse
"""
