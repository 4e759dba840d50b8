"""Inputs: which axis of which nested input is which expression of the dims, and inputs made at any sizes."""

from anyshape.inputs.added_inputs import StateInput, state_parameter, with_state
from anyshape.inputs.by_trying import explain_bad_inputs, is_bad_value
from anyshape.inputs.calls import BoundCall, Inputs, bind_call
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
    "bind_call",
    "declare",
    "dim",
    "explain_bad_inputs",
    "flatten",
    "flatten_outputs",
    "is_bad_value",
    "state_parameter",
    "with_state",
]
