"""The frozen records that stages hand to one another: data, no work.

Files, in the order in which data flows:

    explored      explore gives: where the module answers, and the rules for it
    captured      capture gives: programs (Region), their conditions (Guard), loops (Loop), output tensors
    export        translate gives Exported; the user gets Export; a rung gives Attempt
    verdict       verify gives: sizes compared, failures, errors
    file_verdict  verify gives for an existing file: `anyshape.check`
    contract      contract gives: dims, rules, inputs, outputs, evidence
    repaired      repair gives: what was edited in the user's source
    runs          how a result was made: times, seeds, costs
    reportable    results that can be written as a page
    untried_text  what was not compared, in words
    stripping     records for reports, without the user's lines
"""
