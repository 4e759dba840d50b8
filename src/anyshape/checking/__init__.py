"""Files that exist already: compared with their module, signed again, measured, made dynamic or static.

Files, in the order in which data flows:

    contract_inputs  inputs made from a contract alone; does a runtime refuse sizes outside it?
    compare_file     a file beside its module; --sign
    checks           `anyshape.check`, its result and its page; latency and memory over sizes
    two_files        two files of one model, and the page about them
    repairing        `anyshape fix`: a static file -> a dynamic one
    file_evidence    evidence that a repaired file is right
    freezing         `anyshape freeze`: dims -> numbers
"""
