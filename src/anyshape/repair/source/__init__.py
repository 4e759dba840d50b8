"""Repair of a module's source: numbers and tables of one size in the user's lines -> edits that follow the inputs.

Files, in the order in which data flows:

    source_patch   the sizes at which the module is called; edits -> new lines, a diff, and findings
    traced_calls   one call, with what each statement saw
    source_sites   expressions in the source that hold numbers
    axis_readings  which size a number can be
    source_tables  a table of one size -> text that makes it at any, where it is used
    edit_search    search for edits under which the module answers; numbers that were left
"""
