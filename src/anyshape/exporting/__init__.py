"""The story of an export: the pipeline, the ladder of rungs, and what is decided between the stages.

Files, in the order in which data flows:

    pipeline          the stages in order; start reading here
    context           ExportContext: what every rung works with; time of stages; the function that compares; the census of sizes
    module_trials     call the module at given sizes: where it answers, with values that it takes
    constancy         models with state or randomness: refused, or made constant
    empty_ranges      open ranges that begin at 0, where the user's code shows by its conditions that 0 is meant
    ladder            RUNGS: all rungs in order, until one gives a file that is right
    capture_attempts  the attempts of the rungs
    attempts          one attempt: capture -> translate -> optimize -> defend -> verify
    decided           the rung for models that decide by values
    bounded           which part of the domain is promised, and the sizes at which the file is compared
    targets           target="onnxruntime": its optimizer's file, with names and metadata put back
    fix_trials        fixes of errors are tried before they are shown; static axes that have to follow a dim
    source_repair     repair=True: find edits, export a copy with edited source
    module_evidence   evidence that edits are right, and checks that reject them
    dry_run           `anyshape.axes`: explore, and write nothing
    report_files      write the HTML page
"""
