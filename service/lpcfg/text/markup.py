"""Recognise text that is a file of another kind, so that its markup is not parsed as words."""

import re

_LOOKED_AT = 4000  # characters: a kind of file shows itself at its beginning
_BEFORE = "\ufeff \t\r\n"
_FIRST = "#1(<"
"""The characters that texts of other kinds begin with."""
_LABEL = r"[A-Z][A-Z0-9$=|*-]*"
_LEAF = rf"\((?:{_LABEL}|[.,:#$]|``|'') [^\s()]+\)"
_OPENING = rf"\(\s*(?:{_LABEL}\s*)?\("  # a sentence in parentheses has words before the second one
_BRACKETS = re.compile(rf"{_OPENING}.*?{_LEAF}", re.DOTALL)
# The first line of a tree over several lines.
_OPEN_LINE = re.compile(rf"\(\s*(?:(?:ROOT|TOP|S1?)\s*)?(?:\({_LABEL}\s*)*")
_HTML = re.compile(
    r"<!doctype html\b|<\?xml\b|<([a-z][a-z0-9]*)\b[^<>]*>(?=.*</\1\s*>)", re.IGNORECASE | re.DOTALL
)
_ROW = r"1(?:-\d+)?(?:\t[^\t\n]+){9}[ \r]*(?:\n|$)"
_COMMENT = r"#\s*(?:text|sent_id|newdoc id|newpar id|global\.columns) = "
_CONLLU = re.compile(rf"(?:#[^\n]*\n\s*)*{_ROW}|{_COMMENT}")


def is_undecided(beginning: str) -> bool:
    """Return True if `foreign` may tell more of a text when more than its beginning is there."""
    head = beginning.lstrip(_BEFORE)
    return len(beginning) < _LOOKED_AT and (not head or head[0] in _FIRST)


def foreign(text: str) -> str | None:
    """Name the kind of a text that is not plain text: "CoNLL-U", "Penn brackets", "HTML"."""
    head = text[:_LOOKED_AT].lstrip(_BEFORE)
    if head.startswith(("#", "1")) and _CONLLU.match(head):
        return "CoNLL-U"
    if head.startswith("(") and (_BRACKETS.match(head) or _OPEN_LINE.fullmatch(head.rstrip())):
        return "Penn brackets"
    if head.startswith("<") and _HTML.match(head):
        return "HTML"
    return None
