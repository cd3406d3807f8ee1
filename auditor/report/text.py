"""Numbers and untrusted text, as a reader sees them. A value that is not there is `DASH`, never 0 and never `nan`."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Mapping

DASH = "–"
_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


class _Marks(dict[int, str]):
    """A table for `str.translate` that fills itself: hidden characters become `⟨U+202E⟩`, the rest stay."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        self[code] = f"⟨U+{code:04X}⟩" if unicodedata.category(char) in _HIDDEN else char
        return self[code]


_INLINE = _Marks()
_BLOCK = _Marks({ord("\n"): "\n", ord("\t"): "\t"})


def visible(text: str) -> str:
    """`text` with control characters, bidi overrides and other format characters spelled out; line breaks and tabs
    stay."""
    return text.translate(_BLOCK)


def inline(text: str) -> str:
    """Like `visible` for a name in running text: line breaks and tabs are spelled out as well."""
    return text.translate(_INLINE)


def cut(text: str, limit: int = 2000) -> tuple[str, int, str]:
    """(start, number of characters left out, end): the middle goes where `text` is longer than `limit`."""
    if len(text) <= limit:
        return text, 0, ""
    head = limit * 3 // 5
    tail = limit - head
    return text[:head], len(text) - limit, text[-tail:]


def known(value: float | None) -> bool:
    """Whether there is a number to show."""
    return value is not None and math.isfinite(value)


def rate(value: float | None, places: int = 3) -> str:
    """A share or a difference of shares: `0.310`."""
    if value is None or not math.isfinite(value):
        return DASH
    shown = f"{value:.{places}f}"
    return shown[1:] if shown.startswith("-") and float(shown) == 0 else shown


def interval(pair: tuple[float, float] | None, places: int = 3) -> str:
    """`[0.283, 0.341]`."""
    if pair is None or not all(known(end) for end in pair):
        return DASH
    return f"[{rate(pair[0], places)}, {rate(pair[1], places)}]"


def clipped(value: float | tuple[float, float] | None) -> float | tuple[float, float] | None:
    """A share or an interval of one, held within 0 and 1: what is estimated signed is shown so."""
    if value is None:
        return None
    return (_share(value[0]), _share(value[1])) if isinstance(value, tuple) else _share(value)


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))


def signed(value: float | None, places: int = 3) -> str:
    """A difference: `+0.310`, `-0.310`, `0.000`."""
    shown = rate(value, places)
    return f"+{shown}" if value is not None and value > 0 and shown != DASH and float(shown) else shown


def signed_interval(pair: tuple[float, float] | None, places: int = 3) -> str:
    """`[+0.283, +0.341]`."""
    if pair is None or not all(known(end) for end in pair):
        return DASH
    return f"[{signed(pair[0], places)}, {signed(pair[1], places)}]"


def count(value: float | None) -> str:
    """A count, with thousands separated: `12,000`; a shared count keeps what it needs: `3.5`."""
    if value is None or not math.isfinite(value):
        return DASH
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}".rstrip("0")


def percent(share: float | None, places: int = 1) -> str:
    """A share of 0.612 as `61.2 %`."""
    return DASH if not known(share) else f"{rate(share and share * 100, places)} %"


def plural(number: int, one: str, many: str = "") -> str:
    """`1 wrapper`, `5 wrappers`."""
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


def p_value(value: float | None) -> str:
    """`0.012`, or `< 0.001`."""
    return "< 0.001" if value is not None and 0 <= value < 0.001 else rate(value)


def option(value: object) -> str:
    """A study's option as one line of text."""
    if value is None or value == "" or value == () or value == []:
        return "not set"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(option(part) for part in value)
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)
