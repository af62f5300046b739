"""Write the synchronous client from the asynchronous one, word by word: `make format` runs this."""

import re
import subprocess
import sys
from pathlib import Path

CLIENT = Path(__file__).resolve().parents[1] / "service" / "lpcfg" / "client"
SOURCE, TARGET = CLIENT / "asynchronous.py", CLIENT / "synchronous.py"
TITLE = '"""The synchronous client, which `make format` writes from the asynchronous one."""'
EXAMPLE = '''
    """A client of the service at an address.

    >>> with lpcfg.Client("http://127.0.0.1:8000") as client:
    ...     answer = client.parse("The cat sat on the mat.")
    ...     tokens = client.parse([["Cats", "sleep", "."]], k=2)
    ...     tagged = client.parse([{"tokens": ["Cats", "sleep"], "tags": ["NNS", None]}])
    >>> answer.sentences[0].parses[0].tree
    \'(S (NP (DT The) (NN cat)) (VP (VBD sat) (PP (IN on) (NP (DT the) (NN mat)))) (. .))\'
    >>> len(tokens.sentences[0].parses), tagged.sentences[0].tokens[0].tag
    (2, \'NNS\')
    """
'''.strip()
WORDS = (
    (r'\A""".*?"""', TITLE),
    (r'"""A client of the service at an address, for asyncio.*?"""', EXAMPLE),
    (r"httpx\.AsyncBaseTransport", "httpx.BaseTransport"),
    (r"\bAsync(Client|Iterator)\b", r"\1"),
    (r"\b(async|await) ", ""),
    (r"\basyncio\b", "time"),
    (r"\b__a(enter|exit)__\b", r"__\1__"),
    (r"\ba(close|read|iter_bytes)\b", r"\1"),
)
"""What is written differently, as regular expressions, in this order."""


def synchronous(source: str) -> str:
    """Return the synchronous form of an asynchronous source, formatted."""
    for pattern, replacement in WORDS:
        source = re.sub(pattern, replacement, source, flags=re.DOTALL)
    for arguments in (["check", "--select", "I", "--fix"], ["format"]):
        command = [sys.executable, "-m", "ruff", *arguments, "--quiet", "--stdin-filename"]
        done = subprocess.run(
            [*command, str(TARGET), "-"], input=source, capture_output=True, text=True, check=True
        )
        source = done.stdout
    return source


if __name__ == "__main__":
    TARGET.write_text(synchronous(SOURCE.read_text(encoding="utf-8")), encoding="utf-8")
