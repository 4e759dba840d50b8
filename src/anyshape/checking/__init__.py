"""Files that exist already: compared with their module, signed again, measured, made dynamic or static.

Files, in the order in which data flows:

    contract_inputs   inputs made from a contract alone
    compare_file      a file beside its module; --sign
    checks            `anyshape.check`
    check_pages       the page of a checked file
    two_files         two files of one model
    comparison_pages  the page of two files
    benching          latency and memory over sizes
    outside_runs      does a runtime refuse sizes outside the contract?
    repairing         `anyshape fix`: a static file -> a dynamic one
    file_evidence     evidence that a repaired file is right
    freezing          `anyshape freeze`: dims -> numbers
"""
