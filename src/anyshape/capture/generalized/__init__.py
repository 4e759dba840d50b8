"""The rung that learns one program from concrete traces: every number that differs becomes an expression of the dims.

Files, in the order in which data flows:

    trace                the record of one run: steps that refer to one another
    record               the module at given sizes -> a trace
    values_in_traces     values that Python reads from tensors in a trace
    called_operators     the graph of the operators that one call makes, by kernels that compute shapes only
    template             traces of one structure -> one template; what its steps take
    explained_arguments  every argument of the template, explained, lists of tensors among them
    resolver             where each argument comes from
    fit_forms            the forms of integers that are tried
    fit_integers         integers seen at many sizes -> an expression
    fit_reals            floats seen at many sizes -> an expression
    python_constants     tensors made from Python values -> arange, full, tril, ...
    template_fits        all fits of one template
    learn                trace, explain, predict, until the rules hold on unseen traces
    traced_regions       other sizes take another path -> the condition between them
    scope                a graph under construction: arithmetic on sizes
    graph_frames         places -> nodes of the graph
    generalized_rung     the rung itself: the learned graph -> an exported program with guards
    not_learned          why it could not be learned: findings
"""

from anyshape.capture.generalized.generalized_rung import capture_generalized

__all__ = ["capture_generalized"]
