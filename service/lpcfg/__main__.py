"""Start the `lpcfg` command, with interrupts held back before anything large is imported."""

import sys

from lpcfg.cancel import block_interrupts


def main() -> int:
    """Run the command that this process was started for."""
    block_interrupts()
    from lpcfg.cli import main as command

    return command()


if __name__ == "__main__":
    sys.exit(main())
