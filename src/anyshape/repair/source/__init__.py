"""Repair of a module's source: numbers and tables of one size in the user's lines -> edits that follow the inputs.

Files, in the order in which data flows:

    repair_probes    the sizes at which the module is called
    traced_calls     one call, with what each statement saw
    source_sites     expressions in the source that hold numbers
    axis_readings    which size a number can be
    inlined_tables   tables made by expressions, written where they are used
    table_texts      a table of one size -> text that makes it at any
    edit_search      search for edits under which the module answers
    other_readings   numbers that were left and may be sizes
    source_patch     edits -> new lines, and a diff
    source_messages  findings
"""
