"""Inputs that we made from an example, refused for their values: our bad inputs, not the model's fault.

a refusal that goes away with tame integers  ->  AS027: give a function of sizes
"""

from __future__ import annotations

import torch

from anyshape.findings import Finding
from anyshape.inputs import Declared, explain_bad_inputs
from anyshape.modules.state import kept
from anyshape.records.explored import Explored


def diagnose_made_values(module: torch.nn.Module, declared: Declared, explored: Explored) -> tuple[Finding, ...]:
    """The finding for the smallest sizes at which our values are to blame; nothing where none are."""
    for refusal in sorted(explored.refused, key=lambda refused: sum(refused.sizes.values()))[:3]:
        try:
            with kept(module), torch.no_grad():
                declared.call(module, declared.make(refusal.sizes, 0))
        except Exception as error:  # the module's own refusal, once more, to look at
            found = explain_bad_inputs(module, declared, refusal.sizes, error)
            if found is not None:
                return (found,)
    return ()
