"""List English words that are written with a full stop, and what may follow a full stop."""

import re

# These keep their full stop at the end of a sentence too, as dotted letters (U.S., p.m.) do …
ALWAYS_DOTTED = "etc al Inc Corp Ltd Co Jr Sr"
# … these only within one …
DOTTED = (
    "Mr Mrs Ms Mx Messrs Mme Mlle Dr Drs Prof St Mt Ft Gen Sen Rep Gov Lt Col Capt Sgt Rev Hon Fr "
    "Maj Adm Cmdr Cpl Pvt Pres Bros Dept Univ Assn Ave Blvd Rd vs v viz cf ca approx resp esp incl "
    "Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec Mon Tue Tues Wed Thu Thur Thurs Fri Sat Sun "
    "Ala Ariz Ark Calif Colo Conn Fla Ga Ill Kan Ky La Mass Md Mich Minn Mo Okla Ore Pa Penn Tenn "
    "Tex Va Vt Wis Ph Est est abbr Int ed eds Ed Eds trans"
)
# … and these only before a number.
DOTTED_BEFORE_NUMBERS = (
    "No Nos no nos Fig Figs fig figs Eq Eqs Ref Refs ref refs Vol Vols vol vols p pp ch chr Ch sec "
    "Sec Chap Tab cat Art art"
)
# A full stop without a blank behind it ends a sentence in `said.Then`, but not in `Node.js`.
AFTER_A_STOP = r"[A-Z][a-z]++(?![A-Z0-9_(`]|\.\w)"
"""A word that may begin a sentence right after a full stop; `asyncio.TaskGroup` has none."""


def any_of(words: str) -> str:
    """Return a pattern that matches any of these words, which have blanks between them."""
    return "|".join(map(re.escape, words.split()))
