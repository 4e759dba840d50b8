"""What stands in for parts of Python, numpy and torch while a module runs for us.

| while                        | replaced                                                            | in                                   |
|------------------------------|---------------------------------------------------------------------|--------------------------------------|
| any export runs              | `warnings`, stderr and logging of libraries; `min`, `max`, `math.pow` of torch.export | `quiet`, `patching` |
| a module is captured         | `int`, `len`, `range`, `math`, numpy in the user's own functions    | `open_numbers`, `open_arrays`        |
| a module is asked for values | `bool()`, `int()`, `.item()` of tensors                             | `questions`, `python_numbers`        |
| conditions are looked for    | answers of conditions                                               | `needless_conditions`                |
| a module runs in eager mode  | `torch.cond`, `while_loop`, `scan`, `map`                           | `control_flow`                       |

Every replacement is made by `patching`, for the exporting thread alone, and undone when the block ends, also by an error:
another thread sees the original at all times.
"""
