"""Word lists and sentence parts of the bundled tasks. Changing any of them changes published numbers.

Category members are unambiguous: none belongs to two categories, and none starts with a vowel letter that is read
as a consonant (so `article` is right).
"""

from __future__ import annotations


def words(line: str) -> tuple[str, ...]:
    """The words of a line."""
    return tuple(line.split())


CATEGORIES: dict[str, tuple[str, ...]] = {
    "animal": words(
        "dog cat horse cow pig sheep goat lion tiger bear elephant monkey rabbit wolf deer camel giraffe "
        "zebra squirrel fox kangaroo donkey"
    ),
    "fruit": words(
        "banana apple grape lemon pear mango cherry strawberry pineapple watermelon raspberry apricot peach "
        "plum blueberry coconut"
    ),
    "vehicle": words(
        "car bus truck bicycle motorcycle train tram taxi van tractor scooter ambulance moped limousine minivan jeep"
    ),
    "body part": words("nose knee elbow shoulder finger thumb ear mouth ankle wrist neck toe chin cheek forehead hip"),
    "piece of furniture": words(
        "table chair sofa desk bookshelf wardrobe bed armchair dresser cupboard bench stool nightstand "
        "bookcase couch cabinet"
    ),
    "musical instrument": words(
        "piano guitar violin flute trumpet drum cello clarinet harp saxophone trombone banjo tuba oboe "
        "bassoon accordion"
    ),
    "piece of clothing": words(
        "shirt jacket skirt sweater coat hat scarf sock dress glove blouse vest cardigan hoodie raincoat sweatshirt"
    ),
    "tool": words(
        "hammer screwdriver saw wrench drill shovel rake chisel axe crowbar pickaxe sledgehammer hacksaw "
        "spanner pitchfork hoe"
    ),
}

PEOPLE: tuple[str, ...] = words(
    "Tom Anna Ben Clara David Emma Frank Grace Henry Julia Kevin Laura Martin Nina Oscar Paula"
)

THINGS: tuple[str, ...] = words(
    "apples books coins pencils marbles stamps cards shells buttons cookies stickers balloons"
)

LABELS: dict[str, str] = {
    "animal": "animal",
    "fruit": "fruit",
    "vehicle": "vehicle",
    "instrument": "musical instrument",
    "tool": "tool",
}
"""The labels of `groups`: label -> category."""

KEYS: tuple[str, ...] = words(
    "harbor window garden pencil bridge candle forest ladder mirror rocket pillow castle button engine "
    "island kettle lantern meadow needle orchard planet ribbon saddle temple tunnel valley wagon whistle "
    "anchor basket copper dragon"
)


def article(noun: str) -> str:
    """`a dog`, `an apple`, for the nouns of this file."""
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"
