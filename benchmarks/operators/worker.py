"""The child process of the audit: reads `number exporter` lines, answers with JSON lines, one a sample, then `done`.

It may crash or hang: the parent then notes it, and starts another.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import warnings

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)


def main() -> None:
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    # Whatever the exporters print goes to nobody.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    import torch
    from cases import cases_of
    from judge import judge
    from torch.testing._internal.common_methods_invocations import op_db

    torch.set_num_threads(1)
    answers.write(json.dumps({"ready": len(op_db)}) + "\n")
    for line in sys.stdin:
        number, exporter = line.split()
        entry = op_db[int(number)]
        cases, left_out = cases_of(entry)
        if left_out is not None:
            answers.write(json.dumps({"operator": left_out.operator, "left_out": left_out.rule}) + "\n")
        for case in cases:
            answers.write(json.dumps({"begins": case.operator, "sample": case.number}) + "\n")
            answers.write(json.dumps(judge(case, exporter)) + "\n")
        answers.write(json.dumps({"done": entry.name}) + "\n")


if __name__ == "__main__":
    main()
