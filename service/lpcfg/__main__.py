"""Start the `lpcfg` command, with interrupts held back before anything large is imported."""

import sys

from lpcfg.base.cancel import block_interrupts
from lpcfg.base.collector import skip_the_last_collections
from lpcfg.base.errors import InputError
from lpcfg.base.extras import extra


def main() -> int:
    """Run the command that this process was started for."""
    block_interrupts()
    try:
        with extra("cli", "commands"):
            from lpcfg.cli import main as command
    except InputError as error:
        print(f"lpcfg: error: {error}", file=sys.stderr)
        return 1
    code = command()
    skip_the_last_collections()
    return code


if __name__ == "__main__":
    sys.exit(main())
