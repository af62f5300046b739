"""`python -m lpcfg` is the `lpcfg` command."""

import sys

from lpcfg.cli import main

sys.exit(main())
