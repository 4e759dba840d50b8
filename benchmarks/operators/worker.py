"""The child process of the audit: reads `entry sample exporter` lines, answers each with JSON lines, the last of which has a
`status`.

It may crash or hang: the parent then knows from the last line what was going on, and starts another. `list` is answered with
one line an entry of op_db: its samples, or the rule by which it is left out.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import warnings
from typing import Any

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

    def say(**answer: Any) -> None:
        answers.write(json.dumps(answer) + "\n")

    torch.set_num_threads(1)
    say(ready=len(op_db))
    for line in sys.stdin:
        if line.strip() == "list":
            for number, entry in enumerate(op_db):
                cases, left_out = cases_of(entry)
                rule = left_out.rule if left_out is not None else None
                say(entry=number, operator=entry.formatted_name, samples=len(cases), left_out=rule)
            say(status="listed")
            continue
        number, sample, exporter = line.split()
        case = cases_of(op_db[int(number)])[0][int(sample)]
        say(**judge(case, exporter, lambda stage: say(stage=stage)))


if __name__ == "__main__":
    main()
