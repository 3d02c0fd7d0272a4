"""A worker process of this machine: reads batches as lines of JSON, and answers with lines."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from queue import SimpleQueue

from ._work import work


def _read(batches: SimpleQueue[str | None]) -> None:
    for line in sys.stdin:
        batches.put(line)
    batches.put(None)
    # The coordinator has ended, so nobody waits for the batch that is running.
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    # Ctrl-C reaches every process of the terminal. The coordinator decides what to do then.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of other code must not be mixed with the answers
    batches: SimpleQueue[str | None] = SimpleQueue()
    threading.Thread(target=_read, args=(batches,), daemon=True).start()
    while (line := batches.get()) is not None:
        answers.write(json.dumps(work(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
