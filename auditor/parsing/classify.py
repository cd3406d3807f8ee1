"""The steps that look at the response before its text."""

from __future__ import annotations

from auditor.parsing.state import State, unparseable
from auditor.records import Outcome, Reason, Reply


def classify_reply(state: State) -> State | Outcome:
    """Ends a reply that holds no answer text: filtered, refused, a tool call, all reasoning, cut short, or empty."""
    reason = _reason(state.reply, state.cut)
    return unparseable(reason) if reason else state


def _reason(reply: Reply, cut: bool) -> Reason | None:
    if reply.finish_reason == "content_filter":
        return "content_filter"
    if reply.refusal:
        return "refusal"
    if reply.finish_reason == "error":
        return "truncated"
    if reply.text and not reply.text.isspace():
        return None
    return _empty_reason(reply, cut)


def _empty_reason(reply: Reply, cut: bool) -> Reason:
    if reply.tool_calls:
        return "tool_call"
    reasoned = bool(reply.reasoning and reply.reasoning.strip())
    if cut:
        return "truncated_in_reasoning" if reasoned or reply.reasoning_tokens or not reply.text else "truncated"
    return "content_in_reasoning" if reasoned else "empty"


def refuse_cut(state: State) -> State | Outcome:
    """Ends a reply that its token limit stopped (finish_reason `length`), whatever it says."""
    return unparseable("truncated") if state.cut else state
