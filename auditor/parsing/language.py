"""What a parser is told about the language of replies; nothing about it is ever guessed."""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

from auditor.records import AnswerType

_SWAPPED = str.maketrans(",.", ".,")


class Language(Struct, frozen=True, forbid_unknown_fields=True):
    """How replies write truth and numbers: words for `true` and `false` beside true, yes, false and no, in any case;
    `decimal_comma` where 1.234,56 is a number and 1,5 is one and a half."""

    true: tuple[str, ...] = ()
    false: tuple[str, ...] = ()
    decimal_comma: bool = False

    def __post_init__(self) -> None:
        words = [word.casefold() for word in (*self.true, *self.false)]
        if wrong := [word for word in words if not word.isalpha() or words.count(word) > 1]:
            raise ValueError(f"{wrong[0]!r} is not one word, or stands twice among the words for true and false")

    def plain(self, text: str, answer_type: AnswerType) -> str:
        """The text with the declared words as true and false, or with the decimal comma as a point."""
        if answer_type == "number":
            return text.translate(_SWAPPED) if self.decimal_comma else text
        words = {word.casefold(): "true" for word in self.true} | {word.casefold(): "false" for word in self.false}
        if not words:
            return text
        return _any_of(tuple(words)).sub(lambda match: words.get(match[0].casefold(), match[0]), text)


UNDECLARED = Language()


@lru_cache(maxsize=64)
def _any_of(words: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, words))})(?!\w)", re.I)
