"""Stage: facts of the other stages -> findings in the user's own words, one file for each kind of cause.

Files, in the order in which data flows:

    refusals              the module refuses sizes of the domain
    one_size              the module works at one size of a dim (AS102)
    value_findings        values that decide or are not taken; outputs that are not as declared
    state_and_randomness  models that keep state or draw numbers
    captures              no capture, or no translation: which line, which operator
    consent               smaller promises: lowered by the user, or by time, memory and 64 bits
    differences           the file's outputs differ from the module's
    comparison_notes      notes on what was compared
    file_rules            RULES: the rules about a compared file, in order
    wording               words that several rules share
"""
