"""Stage: the module -> programs of torch with the conditions under which they hold. One way to capture is a rung.

Files, in the order in which data flows:

    rungs              METHODS: the ways to capture, each CaptureContext -> Captured
    trace_sizes        choose the sizes to trace at
    torch_export       torch.export with symbols for sizes, by the rules of later torch, below autograd where needed
    symbolic           the rung that calls torch.export with symbolic sizes
    noted_lines        lines on which a size becomes a text, or a float of sizes is rounded
    rounded_floats     sizes at which a rounded float of sizes becomes another number
    guards             every condition that torch recorded -> Guard, in the user's dims, proved or not by z3
    sympy_terms        torch's sympy expressions -> ours
    failing_sizes      which guards fail at few sizes only; sizes at which a condition fails that is no expression of ours
    layout_conditions  conditions by which torch chooses a view or a copy: dropped
    pinned_sizes       regions of which each has one size: the sign of a loop
    regions            a guard cuts the domain -> capture the other side, too
    size_steps         the steps of a program that compute with sizes
    overflow           where these stay exact in 64 bits
    guard_candidates   guards as candidates for rules of explore
    generalized/       the rung that learns a program from concrete traces
    rerolled/          the rung that finds loops in traces
"""
