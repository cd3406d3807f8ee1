"""What rows of the journal become: values as parsers, the border and the report need them, and back."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from auditor.records import AnswerSpace, Message, Reply, Row


class Stored(Struct, frozen=True):
    """One generation as a parser needs it."""

    id: int
    wrapper: str
    item: int
    reply: Reply | None
    given_parsed: bool | None = None
    given_correct: bool | None = None


class StoredItem(Struct, frozen=True):
    """What an outcome is judged against."""

    space: AnswerSpace
    gold: str | None


def reply_values(reply: Reply) -> tuple[Any, ...]:
    return (
        reply.text,
        reply.finish_reason,
        reply.reasoning,
        reply.refusal,
        reply.tool_calls,
        reply.native_finish_reason,
        reply.prompt_tokens,
        reply.completion_tokens,
        reply.reasoning_tokens,
        reply.cost_usd,
        reply.provider,
        reply.model_returned,
        reply.system_fingerprint,
    )


def stored_of(row: tuple[Any, ...]) -> Stored:
    id_, wrapper, item, text, finish, reasoning, refusal, tools, parsed, correct = row
    if parsed is not None:
        return Stored(id_, wrapper, item, None, bool(parsed), None if correct is None else bool(correct))
    return Stored(id_, wrapper, item, Reply(text, finish, reasoning, refusal, tools))


def row_of(row: tuple[Any, ...], item: StoredItem) -> Row:
    space = item.space
    given = [None if value is None else bool(value) for value in row[16:18]]
    return Row(
        model=row[2],
        task=row[3],
        item=row[4],
        wrapper=row[5],
        arm=row[6],
        seed=row[7],
        status="answered" if row[8] else "missing",
        text=row[9],
        finish_reason=row[10],
        reasoning=row[11],
        refusal=row[12],
        tool_calls=row[13],
        prompt_tokens=row[14],
        completion_tokens=row[15],
        parsed=given[0],
        correct=given[1],
        group=row[18],
        cluster=row[19],
        extra=msgspec.json.decode(row[20]) if row[20] else {},
        answer_type=space.type,
        choices=dict(zip(space.labels, space.texts, strict=True)) if space.texts else (space.labels or None),
        gold=item.gold,
    )


def read_messages(body: bytes | None) -> tuple[Message, ...]:
    """A stored prompt."""
    return msgspec.json.decode(body, type=tuple[Message, ...]) if body else ()
