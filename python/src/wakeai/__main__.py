"""`python -m wakeai grid FILE --set KEY=a,b,c --out DIR`."""

import sys

from ._cli import main

if __name__ == "__main__":
    sys.exit(main())
