"""A worker process of this machine: reads batches as lines of JSON, and answers with lines."""

from __future__ import annotations

import json
import os
import signal
import sys

from ._work import work


def main() -> None:
    # Ctrl-C reaches every process of the terminal. The coordinator decides what to do then.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of other code must not be mixed with the answers
    for line in sys.stdin:
        answers.write(json.dumps(work(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
