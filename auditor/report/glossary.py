"""What the words of a report mean."""

from __future__ import annotations

REASONS = {
    "empty": "The reply has no text.",
    "truncated": "The token limit cut the reply before its answer was complete.",
    "truncated_in_reasoning": "The token limit was used up by reasoning; no answer followed.",
    "refusal": "The model or its provider declined to answer.",
    "content_filter": "A content filter stopped the reply.",
    "tool_call": "The model called a tool instead of answering.",
    "content_in_reasoning": "The answer stands in the reasoning field, the reply itself is empty.",
    "code_fence": "The reply is wrapped in a markdown code fence.",
    "extra_text": "There is other text around what was asked for.",
    "invalid_json": "The reply is not valid JSON.",
    "missing_key": "The JSON object lacks the answer's key.",
    "extra_key": "The JSON object has keys that were not asked for.",
    "wrong_type": "The answer has another JSON type than asked for.",
    "not_in_choices": "The answer is none of the choices.",
    "block_missing": "The delimited block is not there.",
    "field_missing": "There is no answer line.",
    "duplicate_field": "The answer is given more than once.",
    "conflicting_answers": "More than one distinct answer remains.",
    "placeholder_echo": "The reply repeats a placeholder of the prompt.",
    "no_answer": "Nothing in the reply looks like an answer.",
    "not_canonical": "An answer is there, but not written as asked (for instance `b` for `B`, or `18.00`).",
    "parser_error": "The parser itself failed on the reply.",
    "given": "Scored elsewhere, without a reason.",
}

TERMS = (
    ("Wrapper", "The text around a question: what the model is told about the form of its answer."),
    ("Cell", "One model, task and wrapper: all its generations over items and seeds."),
    ("Accuracy", "Share of generations answered correctly. A reply that cannot be read counts as incorrect."),
    ("Readable (parseability)", "Share of generations from which the parser gets exactly one valid answer."),
    (
        "FSI",
        "Format sensitivity index: the largest minus the least accuracy over wrappers. 0: the wrapper is irrelevant.",
    ),
    ("PSI", "Parseability sensitivity index: the largest minus the least share of readable replies over wrappers."),
    ("nFSI", "FSI divided by the mean accuracy over wrappers, so that weak and strong models compare."),
    (
        "Spread, mean, SD",
        "Of accuracy over the wrappers of one model and task: largest minus least (the FSI), mean, and standard "
        "deviation by the sample formula (divided by F - 1) and by the population formula (divided by F).",
    ),
    (
        "Gain over the mean wrapper",
        "Accuracy of the best single wrapper less the mean over wrappers, averaged over tasks.",
    ),
    ("Noise floor", "The FSI that chance alone would give if the wrapper had no effect."),
    (
        "FSI*, PSI*",
        "FSI and PSI adjusted for that noise, with intervals that cover; 0 where they are within it.",
    ),
    (
        "Simultaneous bounds",
        "Bounds that hold for all pairs of wrappers at once, so for their range, whichever it lies between.",
    ),
    (
        "p, Holm, mid-p",
        "How often a range so large comes by chance where the wrapper does nothing (labels permuted within each item); "
        "adjusted for the number of tasks (Holm); with ties counted half (mid-p).",
    ),
    ("A/A", "One cell with one seed against the same with another: what two runs differ by that do not differ."),
    (
        "Apparent, certified",
        "Two models that change places between wrappers as measured; for sure at 95 %, over all pairs and wrappers.",
    ),
    ("Interval as in the paper", "95 % percentile bootstrap over tasks. Not calibrated: it covers less than it says."),
    ("Strict", "Reads only a reply that is exactly what the wrapper asked for."),
    ("Normalized", "Tolerates formatting around an answer, as long as exactly one answer remains."),
    (
        "Place",
        "A model's place by its mean accuracy over tasks and wrappers under one parser, among the models of its arm "
        "that were asked the same; models that tie share the better place.",
    ),
    (
        "Change of places",
        "Two models whose order by that accuracy is opposite under two parsers. Apparent: chance is not ruled out.",
    ),
    ("Token spread", "Largest minus least prompt tokens over wrappers, divided by their mean, for one item and seed."),
    ("Matched", "The same measure over items whose token spread is at most 5 %."),
    (
        "Format and content part",
        "How much of FSI comes from replies that one wrapper makes unreadable, and how much from "
        "answers that change, on paired items and seeds. The two add up to FSI.",
    ),
    (
        "Cut by the limit, not as asked for",
        "The format part in two: replies that the token limit cut, and whole replies that do not have the form that "
        "the wrapper asked for.",
    ),
    ("Arm", "What the endpoint was told to enforce while decoding, `none` by default, and the token limit."),
    (
        "Verified, claimed, ignored, refused",
        "What is known of enforcement: a canary proved it on every server; nobody proved it; the endpoint accepted the "
        "constraint and did not enforce it; it did not accept it.",
    ),
    ("Canary", "A call whose prompt and constraint disagree, so that the reply shows which of them was followed."),
    ("Missing", "No reply exists (network, provider, budget). Outside every rate, and shown beside it."),
)
