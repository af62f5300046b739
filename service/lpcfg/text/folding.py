"""Fold text, so that rules about it need few characters.

A *folded* copy of a text has exactly one code point for each of the text's: curly quotes are
straight, Unicode spaces are blanks, ends of lines are `\\n`, surrogates are U+FFFD.
"""

PARAGRAPH_SEPARATOR = "\u2029"
_LINE_BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028"
_DOUBLE_QUOTES = "“”„‟«»＂"
_SINGLE_QUOTES = "‘’‚‛＇"
_HYPHENS = "\u2010\u2011"
FOLDS = (
    # str.isspace knows no white space above U+3000.
    dict.fromkeys((code for code in range(0x3001) if chr(code).isspace()), " ")
    | dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
    | dict.fromkeys(map(ord, _LINE_BREAKS), "\n")
    | dict.fromkeys(map(ord, _DOUBLE_QUOTES), '"')
    | dict.fromkeys(map(ord, _SINGLE_QUOTES), "'")
    | dict.fromkeys(map(ord, _HYPHENS), "-")
    | {ord(PARAGRAPH_SEPARATOR): PARAGRAPH_SEPARATOR}
)


def fold(text: str) -> str:
    """Return the folded copy of a text."""
    # CRLF is one line break, not two, and must stay two code points.
    return text.replace("\r\n", " \n").translate(FOLDS)
