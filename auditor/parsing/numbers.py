"""Numbers: exact rationals, their canonical text, and a reader for the ways people write them."""

from __future__ import annotations

import re
from fractions import Fraction

from msgspec import Struct


class Reading(Struct, frozen=True, gc=False):
    """What a piece of text says: one value, or several when more than one could be meant, and the tolerances used."""

    values: tuple[str, ...]
    needed: tuple[str, ...] = ()


CANONICAL = re.compile(r"(?!-0\Z)-?(?:0|[1-9][0-9]{0,499})(?:\.[0-9]{0,499}[1-9])?")

_SPACED = r"[1-9][0-9]{0,2}(?:[ ][0-9]{3}){1,8}(?![0-9])(?:\.[0-9]{1,80})?"
_SPACED_ONCE = re.compile(r"[0-9]+ [0-9]{3}")
_BODY = _SPACED + r"|[0-9](?:[0-9.,\u00a0\u202f\u2009]{0,80}[0-9])?|\.[0-9]{1,80}"
_CURRENCY = r"(?:US)?\\?[$€£¥₹]|\b(?:USD|EUR|GBP)\b"
_LARGEST_EXPONENT = 100
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_VULGAR = {"½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅕": "1/5", "⅛": "1/8", "⅜": "3/8", "⅝": "5/8"}

_NUMBER = re.compile(
    rf"""(?P<sign>[-+−–]?) (?P<before>(?:{_CURRENCY})\ ?)? (?P<inner>[-−]?) (?P<body>{_BODY})
    (?P<exponent> [eE][-+]?[0-9]{{1,3}}
        | \ ?(?:[x×*·]|\\times|\\cdot)\ ?10(?:\ ?(?:\^|\*\*)\ ?\{{?[-+−]?[0-9]{{1,3}}\}}? | [⁰¹²³⁴⁵⁶⁷⁸⁹⁻]{{1,3}}) )?
    (?P<after>\ ?(?:{_CURRENCY}))? (?P<percent>\ ?(?:\\?%|per\ ?cent))?
    (?P<unit> (?:kg|mg|g|km|cm|mm|ml|ms|mph|kWh|kW|Hz|°[CF]?) | \ [A-Za-z°µ]{{1,20}}(?:[/ ][A-Za-z²³]{{1,20}})? )?""",
    re.X,
)
_POWER = re.compile(r"(-?)10([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]{1,3})")
_FRACTION = re.compile(r"([-+−]?)(?:([0-9]{1,40}) )?([0-9]{1,40}) ?[/⁄] ?([0-9]{1,40})")
_LATEX_FRACTION = re.compile(r"([-+−]?)\\[dt]?frac ?\{([0-9]{1,40})\} ?\{([0-9]{1,40})\}")
_MIXED = re.compile(r"([-+−]?[0-9]{0,40}) ?([½⅓⅔¼¾⅕⅛⅜⅝])")
_UNIT_AFTER = re.compile(r"(.+[0-9½⅓⅔¼¾⅕⅛⅜⅝]) ([A-Za-z°µ]{1,20})")
_RANGE = re.compile(
    rf"(?:between |from |either )?([-−]?(?:{_BODY})) ?(?:-|–|—|\bto\b|\bor\b|\band\b|, |;) ?"
    rf"([-−]?(?:{_BODY}))\b.{{0,40}}",
    re.I,
)
_THOUSANDS = re.compile(r"[1-9][0-9]{0,2}(?:([, \u00a0\u202f\u2009])[0-9]{3})(?:\1[0-9]{3})*(?:\.[0-9]+)?")
_PLAIN = re.compile(r"[0-9]+(?:\.[0-9]+)?|\.[0-9]+")

_PROSE = re.compile(r"(?!US|EUR|GBP|between|from|either)[A-Za-z]", re.I)
"""How no number starts."""

_NO_UNIT = frozenset(
    re.findall(
        r"\w+",
        """millions billions trillions thousands hundreds dozens million billion trillion thousand hundred dozen k m b
        half halves third thirds quarter quarters fourth fourths fifth fifths sixth sixths eighth eighths tenth
        tenths hundredth hundredths thousandth thousandths below minus negative or and to plus times over more less
        than squared cubed st nd rd th is are was were not x if but of in the a an first then so because since pm am
        binary bce bc too tens fold pairs sqrt log mod unknown lakh crore bn mn mio mrd grand score gross wrong no
        ago pi root factorial seventh sevenths ninth ninths eleventh elevenths twelfth twelfths thirteenth
        thirteenths fourteenth fourteenths fifteenth fifteenths sixteenth sixteenths twentieth twentieths thirtieth
        thirtieths sixtieth sixtieths millionth millionths""",
    )
)
"""Words after a number that may change what it says."""


def text_of(value: Fraction) -> str:
    """The canonical text: an integer, the shortest finite decimal, or `p/q` in lowest terms."""
    rest, places = value.denominator, 0
    for prime in (2, 5):
        count = 0
        while rest % prime == 0:
            rest, count = rest // prime, count + 1
        places = max(places, count)
    if rest != 1:
        return f"{value.numerator}/{value.denominator}"
    if places == 0:
        return str(value.numerator)
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"


def read(text: str) -> Reading | None:
    """The number that a whole string says, exactly: `1,234` (groups of three), `$29.00`, `50%` (50, flagged), `3/4`,
    `1.5e3`, `1½`, `18 apples`. Several values for `4 or 5`, `1.234,56` and `1,23`; None when it is no number."""
    if len(text) > 500 or not text:
        return None
    if CANONICAL.fullmatch(text):
        return Reading((text,))
    if _PROSE.match(text):
        return None
    text = text.replace("{,}", ",").replace("\\,", ",")
    for reader in (_plain, _power, _fraction, _range):
        reading = reader(text)
        if reading is not None:
            return reading
    return None


def _plain(text: str) -> Reading | None:
    match = _NUMBER.fullmatch(text)
    if match is None or (match["sign"] and match["inner"]) or not is_unit(match["unit"]):
        return None
    if _SPACED_ONCE.fullmatch(match["body"]) and (match["percent"] or " " in (match["unit"] or "").strip()):
        return None  # "2 200 ml bottles" are two numbers
    bodies = _bodies(match["body"])
    scale = _exponent(match["exponent"])
    if abs(scale) > _LARGEST_EXPONENT:
        return None
    sign = "-" if match["inner"] or match["sign"] in ("-", "−", "–") else ""
    values = tuple(dict.fromkeys(_scaled(sign, body, scale) for body in bodies))
    return Reading(values, tuple(_tolerances(match, text, values))) if values else None


def _tolerances(match: re.Match[str], text: str, values: tuple[str, ...]) -> list[str]:
    names = (
        ("unicode_minus", match["sign"] in ("−", "–") or match["inner"] == "−"),
        ("currency", match["before"] or match["after"]),
        ("thousands", len(values) == 1 and not _PLAIN.fullmatch(match["body"])),
        ("scientific", match["exponent"]),
        ("percent", match["percent"]),
        ("unit", match["unit"]),
    )
    return [name for name, used in names if used] or (["number_form"] if values != (text,) else [])


def _bodies(body: str) -> tuple[str, ...]:
    """The readings of digits with separators; two when the comma may be a decimal one."""
    if _PLAIN.fullmatch(body):
        return (body,)
    if _THOUSANDS.fullmatch(body):
        return (re.sub("[, \u00a0\u202f\u2009]", "", body),)
    european, english = body.replace(".", "").replace(",", "."), body.replace(",", "")
    both = tuple(reading for reading in (european, english) if _PLAIN.fullmatch(reading))
    return both if len(both) == 2 else ()


def _scaled(sign: str, body: str, scale: int) -> str:
    if scale:
        return text_of(Fraction(f"{sign}{body}e{scale}"))
    # Without an exponent the digits are the value, but for zeros at their ends.
    whole, _, places = body.partition(".")
    whole, places = whole.lstrip("0") or "0", places.rstrip("0")
    return f"{sign}{whole}.{places}" if places else sign + whole if whole != "0" else "0"


def _exponent(text: str | None) -> int:
    if not text:
        return 0
    tail = text[1:] if text[0] in "eE" else text.partition("10")[2]
    return int(tail.translate(_SUPERSCRIPTS).replace("−", "-").strip(" ^*{}") or 0)


def is_unit(unit: str | None) -> bool:
    """Whether a word after a number leaves what it says: `apples`, but not `million`."""
    return not unit or _NO_UNIT.isdisjoint(unit.strip().casefold().replace("/", " ").split(" "))


def _power(text: str) -> Reading | None:
    match = _POWER.fullmatch(text)
    if match is None or "-" in (power := match[2].translate(_SUPERSCRIPTS))[1:] or power == "-":
        return None
    if abs(int(power)) > _LARGEST_EXPONENT:
        return None
    return Reading((match[1] + text_of(Fraction(10) ** int(power)),), ("superscript",))


def _fraction(text: str) -> Reading | None:
    if mixed := _MIXED.fullmatch(text):
        space = " " if mixed[1].strip("-+−") else ""
        reading = _fraction(mixed[1] + space + _VULGAR[mixed[2]])
        return reading and Reading(reading.values, ("vulgar_fraction",))
    if (unit := _UNIT_AFTER.fullmatch(text)) and is_unit(unit[2]):
        reading = _fraction(unit[1])
        return reading and Reading(reading.values, (*reading.needed, "unit"))
    match, name = _FRACTION.fullmatch(text), "fraction"
    if match is None and (latex := _LATEX_FRACTION.fullmatch(text)):
        sign, whole, above, below, name = latex[1], None, latex[2], latex[3], "latex"
    elif match is not None:
        sign, whole, above, below = match.groups()
    else:
        return None
    if int(below) == 0:
        return None
    value = int(whole or 0) + Fraction(int(above), int(below))
    canonical = text_of(-value if sign in ("-", "−") else value)
    return Reading((canonical,), () if canonical == text else (name,))


def _range(text: str) -> Reading | None:
    match = _RANGE.fullmatch(text)
    if match is None:
        return None
    ends = [read(end) for end in match.groups()]
    values = tuple(dict.fromkeys(value for end in ends if end for value in end.values))
    return Reading(values, ("range",)) if len(values) > 1 else None
