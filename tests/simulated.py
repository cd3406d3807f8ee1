"""A model with known truth: what it answers depends on the prompt and the seed alone."""

from __future__ import annotations

from loopback import Answer, Body, draw

CASES: list[dict[str, object]] = [
    {
        "id": f"case-{i}",
        "question": f"Case {i}: which is a fruit?",
        "choices": ["car", "apple", "hammer"],
        "answer": "B",
    }
    for i in range(60)
]


def told(body: Body) -> str | None:
    """Which of the five wrappers asked; None for preflight's own questions."""
    text = body["messages"][-1]["content"]
    marks = {
        "json": "JSON object",
        "structured_delim": "<BEGIN ANSWER>",
        "structured": "lines that each have",
        "deliberate": "Reason briefly",
        "plain": "only the final answer",
    }
    return next((name for name, mark in marks.items() if mark in text), None)


def said(wrapper: str, value: str) -> str:
    """A reply that fulfils a wrapper's contract."""
    return {
        "plain": value,
        "json": f'{{"answer": "{value}"}}',
        "structured": f"answer: {value}",
        "structured_delim": f"<BEGIN ANSWER>\nanswer: {value}\n<END ANSWER>",
        "deliberate": f"An apple grows on a tree.\nanswer: {value}",
    }[wrapper]


def truth(body: Body) -> tuple[bool, str]:
    """(whether the reply will be readable, the answer in it): json breaks half of its replies, others a tenth."""
    chance = draw(body)
    readable = chance >= (0.5 if told(body) == "json" else 0.1)
    return readable, "B" if int(chance * 1e6) % 10 < 7 else "A"


def reply(body: Body) -> Answer:
    """The simulated model's answer."""
    wrapper = told(body)
    if wrapper is None:
        return Answer(f"Sentence {draw(body):.6f}.")
    readable, value = truth(body)
    return Answer(said(wrapper, value) if readable else "I would rather not say.")
