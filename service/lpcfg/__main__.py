"""Start the `lpcfg` command, with interrupts held back before anything large is imported."""

import sys

from lpcfg.base.cancel import block_interrupts
from lpcfg.base.collector import skip_the_last_collections


def main() -> int:
    """Run the command that this process was started for."""
    block_interrupts()
    from lpcfg.cli import main as command

    code = command()
    skip_the_last_collections()
    return code


if __name__ == "__main__":
    sys.exit(main())
