"""The frozen records that stages hand to one another: data, no work.

Files, in the order in which data flows:

    explored  explore gives: where the module answers, and the rules for it
    captured  capture gives: programs (Region), their conditions (Guard), loops (Loop), output tensors
    export    translate gives Exported; the user gets Export; a rung gives Attempt
    verdict   verify gives: sizes compared, failures, errors
    contract  what a file promises, as a record and as JSON
    runs      how a result was made: times, seeds, costs, edits; results as pages
"""
