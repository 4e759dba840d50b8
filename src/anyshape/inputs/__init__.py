"""Inputs: which axis of which nested input is which expression of the dims, and inputs made at any sizes.

Files, in the order in which data flows:

    declare         any form of declaration -> one record Declared; first way: a function of sizes
    structure       nested values without their leaves, caches of transformers among them
    tree            nested inputs and outputs -> a flat list of leaves with paths
    calls           inputs bound to the parameters of forward
    words           `batch past+seq 64` -> axes; what a user's key means in a call
    torch_forms     dynamic_axes, dynamic_shapes, Dim, caches by layer
    forms           every form of declaring axes -> {path: {axis: expression}}
    assemble        dynamic, names and domain, read and checked -> Declared: the last step of all ways
    sizes_function  a function of sizes: its parameters and their ranges
    probe_sizes     the sizes at which that function is called
    probing         observed sizes of every axis at those sizes
    fit             observed sizes -> the expression of an axis
    fit_one         an integer function of one size, from its values
    by_examples     second and third way: an example with words, or several examples
    from_examples   which axes vary together in several examples
    by_trying       call the module at other sizes; an expression for each axis that can vary
    axis_moves      which axes can change, and which only together
    kinds           which kind of values an example has
    making          inputs at other sizes, drawn in that kind
    declared        the record Declared, which everything downstream reads
    added_inputs    a declaration with further inputs: lengths, the model's state
    axis_messages   findings about axes and sizes
    call_messages   findings about calls and names
"""

from anyshape.inputs.added_inputs import StateInput, state_parameter, with_state
from anyshape.inputs.by_trying import explain_bad_inputs, find_made_integers, is_bad_value
from anyshape.inputs.calls import BoundCall, Inputs
from anyshape.inputs.declare import declare
from anyshape.inputs.declared import Declared, InputLeaf, ValueParameter
from anyshape.inputs.sizes_function import DimRange, dim
from anyshape.inputs.tree import flatten, flatten_outputs

__all__ = [
    "BoundCall",
    "Declared",
    "DimRange",
    "InputLeaf",
    "Inputs",
    "StateInput",
    "ValueParameter",
    "declare",
    "dim",
    "explain_bad_inputs",
    "find_made_integers",
    "flatten",
    "flatten_outputs",
    "is_bad_value",
    "state_parameter",
    "with_state",
]
