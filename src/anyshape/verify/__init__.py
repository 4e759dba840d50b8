"""Stage: run the file beside the module at many sizes, compare, and shrink a failure.

Files, in the order in which data flows:

    request           VerifyRequest: file, module, options; what to compare: sizes, inputs, names
    plan              which trials to make, in which order; the plan in a form that travels
    edge_values       values that random numbers hardly ever have
    patterns          changes of one tensor for edge values
    reference         run the user's module: expected outputs
    tensors           tensors in nested values: copy, cast, to numpy
    run               verify(): the plan run, the file ahead in further children, failures shrunk
    trial_runner      one trial: module and file on the same inputs
    compare           compare two lists of arrays
    tolerance         how far they may differ
    noise             the noise floor, measured on the module
    float64_copy      file and module in double precision
    file_copies       a bfloat16 file that a CPU can run; inner values of a file as outputs
    choices           what the module chose from, in one run
    ties              equal values whose order torch leaves open
    near_ties         values whose order is a matter of rounding; how far other choices move the module's outputs
    steps_of_sizes    steps that sizes alone decide, kept in other precision
    rounding_steps    numbers that rounding moves over a step: rounded, cast to integers, compared
    changing_outputs  random files, compared as samples; calls in a row, with state
    cond_sides        sides of torch.cond that no values lead to
    tally             count trials -> Verdict; verdicts of shares -> one
    shrink            lower failing sizes: the smallest failure
    size_annotations  expressions of sizes, written on nodes
    locate/           the node at fault
"""

from anyshape.verify.reference import Answer, Reference, Refused
from anyshape.verify.request import VerifyOptions, VerifyRequest
from anyshape.verify.run import verify
from anyshape.verify.size_annotations import annotate_sizes

__all__ = ["Answer", "Reference", "Refused", "VerifyOptions", "VerifyRequest", "annotate_sizes", "verify"]
