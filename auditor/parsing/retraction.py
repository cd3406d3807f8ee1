"""Where a reply takes back what it said."""

from __future__ import annotations

import re

_BACK = (
    r"(?:but |oh,? |no,? |please )?(?:wait|actually|hmm|oops|nope|hold on|(?:scratch|scrap|strike) that"
    r"|(?:on|upon) (?:second thought|second look|reflection|review|closer inspection)|correction"
    r"|let me (?:correct|recheck|redo|reconsider)|disregard|ignore (?:that|this|the above|my)"
    r"|(?:i|we) made an? (?:mistake|error)|my (?:apologies|mistake|bad)|no, (?=[A-J]\b)"
    r"|verdict: (?:wrong|incorrect|false|no)"
    r"|the answer above is|(?:that|this) (?:does not|doesn't) (?:match|fit|work)"
    r"|(?:i was|i am|i'm) wrong|i (?:withdraw|retract|take (?:that|this|it) back|no longer (?:stand by|believe|think))"
    r"|that(?:'s| is| was) (?:wrong|not right|incorrect)|sorry,? i meant|i meant|edit)\b"
)
_AT_ONCE = re.compile(_BACK, re.I)
_LATER = re.compile(rf"(?:[.!?,:]|\n(?!\s))\s{{0,4}}{_BACK}", re.I)
_DENIED = re.compile(
    r"[\"'`*)}\]]{0,3}\s{0,4}(?:would be|is|was|may be|might be) (?:wrong|incorrect|false|not\b)", re.I
)

_FAR = 20_000
"""Characters after an answer that are looked at."""


def is_taken_back(text: str, start: int) -> bool:
    """Whether a text takes back, from a place on, what stands before it: `wait`, `scratch that`, `I was wrong`."""
    # Two patterns: one that can only start with a mark skips from mark to mark.
    return bool(
        _LATER.search(text, start, start + _FAR) or _DENIED.match(text, start) or (start == 0 and _AT_ONCE.match(text))
    )
