"""A file behind its contract: `anyshape.load`.

Files, in the order in which data flows:

    loaded        load() and the object it returns
    binding       arguments of a call -> inputs of the file
    call_checks   whether a call keeps the contract
    broken_calls  findings about calls that do not
"""
