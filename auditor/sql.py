"""The journal as SQL text: its schema, and what is asked of it.

`VERSION` counts up; `MIGRATIONS[v]` takes a file from v to v + 1.
"""

from __future__ import annotations

from auditor.records import SEEDS_A_WORD

VERSION = 3

MIGRATIONS: dict[int, str] = {
    1: """
ALTER TABLE generation ADD COLUMN reused TEXT;
ALTER TABLE attempt ADD COLUMN server TEXT NOT NULL DEFAULT '';
ALTER TABLE attempt ADD COLUMN cost_usd REAL;
CREATE TABLE call (
    id INTEGER PRIMARY KEY,
    model TEXT NOT NULL,
    server TEXT NOT NULL,
    purpose TEXT NOT NULL,
    started REAL NOT NULL,
    latency_ms REAL NOT NULL,
    http_status INTEGER,
    fault TEXT,
    sent TEXT NOT NULL,
    body BLOB NOT NULL,
    cost_usd REAL
);
CREATE TABLE endpoint (
    model TEXT NOT NULL,
    server TEXT NOT NULL,
    findings TEXT NOT NULL,
    PRIMARY KEY (model, server)
) WITHOUT ROWID;
""",
    2: """
ALTER TABLE given_cell RENAME TO counted_cell;
CREATE TABLE given_cell (
    cell INTEGER PRIMARY KEY REFERENCES cell (id),
    n INTEGER,
    accuracy REAL NOT NULL,
    parseability REAL
);
INSERT INTO given_cell SELECT cell, n, accuracy, parseability FROM counted_cell;
DROP TABLE counted_cell;
""",
}
"""Version -> what takes a file from it to the next. Each is run in one transaction."""

SET_VERSION = "INSERT OR REPLACE INTO meta VALUES ('schema', '{}');"

SCHEMA = """
CREATE TABLE meta (
    key TEXT PRIMARY KEY,           -- schema, created, name, study (JSON), study_digest, auditor_version, planned, ...
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE cell (
    id INTEGER PRIMARY KEY,
    model TEXT NOT NULL,            -- the model's name in the study
    task TEXT NOT NULL,
    wrapper TEXT NOT NULL,
    arm TEXT NOT NULL,              -- enforcement while decoding; 'none' by default
    UNIQUE (model, task, wrapper, arm)
);

CREATE TABLE item (
    id INTEGER PRIMARY KEY,
    task TEXT NOT NULL,
    item TEXT NOT NULL,             -- the item's id in its task
    space TEXT NOT NULL,            -- AnswerSpace as JSON: type, labels, texts
    gold TEXT,                      -- canonical, NULL where it is not known
    subject TEXT,                   -- the item's group
    cluster TEXT,
    UNIQUE (task, item)
);

CREATE TABLE wrapper (
    name TEXT PRIMARY KEY,
    digest TEXT NOT NULL,           -- over everything that reaches a model or a parser
    contract TEXT NOT NULL          -- Contract as JSON: what replies are read against
) WITHOUT ROWID;

CREATE TABLE parser (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    digest TEXT NOT NULL            -- outcomes of another digest are read again
);

CREATE TABLE budget (
    task TEXT NOT NULL,
    item TEXT NOT NULL,             -- '' for the whole task
    characters INTEGER NOT NULL,    -- what prompts are padded to; fixed at the first plan
    PRIMARY KEY (task, item)
) WITHOUT ROWID;

CREATE TABLE prompt (
    digest TEXT PRIMARY KEY,        -- SHA-256 of messages
    messages BLOB NOT NULL          -- JSON, the exact bytes that were hashed
) WITHOUT ROWID;

CREATE TABLE sending (
    id INTEGER PRIMARY KEY,
    body TEXT NOT NULL UNIQUE       -- what was sent in the end, JSON, without messages and seed
);

CREATE TABLE generation (
    id INTEGER PRIMARY KEY,
    cell INTEGER NOT NULL REFERENCES cell (id),
    item INTEGER NOT NULL REFERENCES item (id),
    seed INTEGER NOT NULL,
    digest TEXT NOT NULL,           -- of the body as requested
    prompt TEXT REFERENCES prompt (digest),
    sending INTEGER REFERENCES sending (id),
    answered INTEGER NOT NULL,      -- 0: missing, no answer exists
    text TEXT,
    finish_reason TEXT,
    reasoning TEXT,
    refusal TEXT,
    tool_calls TEXT,                -- JSON
    native_finish_reason TEXT,
    prompt_tokens INTEGER,
    completion_tokens INTEGER,
    reasoning_tokens INTEGER,
    cost_usd REAL,                  -- of all its attempts
    provider TEXT,                  -- the upstream that answered, where a router says it
    model_returned TEXT,
    system_fingerprint TEXT,
    fault TEXT,                     -- why it is missing: kind and message
    attempts INTEGER NOT NULL,      -- HTTP requests over all runs
    latency_ms REAL,                -- of the last attempt
    given_parsed INTEGER,           -- scored elsewhere: no text, these instead
    given_correct INTEGER,
    extra TEXT,                     -- JSON: unknown keys of an imported row
    reused TEXT,                    -- the run whose reply this is
    UNIQUE (cell, item, seed)
);

CREATE TABLE attempt (
    generation INTEGER NOT NULL REFERENCES generation (id),
    started REAL NOT NULL,          -- Unix seconds
    latency_ms REAL NOT NULL,
    http_status INTEGER,            -- NULL: no reply came
    fault TEXT,
    body BLOB NOT NULL,             -- as received, without the key
    server TEXT NOT NULL DEFAULT '', -- the base URL it went to
    cost_usd REAL
);

CREATE TABLE call (
    id INTEGER PRIMARY KEY,         -- a completion that preflight asked for: no generation, but an attempt
    model TEXT NOT NULL,
    server TEXT NOT NULL,
    purpose TEXT NOT NULL,
    started REAL NOT NULL,
    latency_ms REAL NOT NULL,
    http_status INTEGER,
    fault TEXT,
    sent TEXT NOT NULL,
    body BLOB NOT NULL,
    cost_usd REAL
);

CREATE TABLE endpoint (
    model TEXT NOT NULL,
    server TEXT NOT NULL,           -- base URL
    findings TEXT NOT NULL,         -- JSON: what preflight found out, so that a resumed run need not ask again
    PRIMARY KEY (model, server)
) WITHOUT ROWID;

CREATE TABLE outcome (
    parser INTEGER NOT NULL REFERENCES parser (id),
    generation INTEGER NOT NULL REFERENCES generation (id),
    outcome TEXT NOT NULL,          -- parsed | ambiguous | unparseable
    value TEXT,
    reason TEXT,
    needed TEXT,                    -- comma-separated steps
    candidates TEXT,                -- JSON
    correct INTEGER,                -- NULL without gold
    PRIMARY KEY (parser, generation)
) WITHOUT ROWID;

CREATE TABLE given_cell (
    cell INTEGER PRIMARY KEY REFERENCES cell (id),
    n INTEGER,                      -- an imported table of cells: what is known of each; NULL: n is not
    accuracy REAL NOT NULL,
    parseability REAL
);

CREATE TABLE preflight (
    name TEXT PRIMARY KEY,
    status TEXT NOT NULL,
    message TEXT NOT NULL
) WITHOUT ROWID;
"""

STATE = """
SELECT g.digest, g.answered FROM generation g WHERE
    g.cell = (SELECT id FROM cell WHERE model = ?1 AND task = ?2 AND wrapper = ?4 AND arm = ?5)
    AND g.item = (SELECT id FROM item WHERE task = ?2 AND item = ?3) AND g.seed = ?6
"""

REPLY_COLUMNS = (
    "text, finish_reason, reasoning, refusal, tool_calls, native_finish_reason, prompt_tokens, completion_tokens, "
    "reasoning_tokens, cost_usd, provider, model_returned, system_fingerprint"
)
COLUMNS = (
    f"cell, item, seed, digest, prompt, sending, answered, {REPLY_COLUMNS}, fault, attempts, latency_ms, "
    "given_parsed, given_correct, extra, reused"
)
REPLACED = [
    name
    for name in f"digest, prompt, sending, answered, {REPLY_COLUMNS}, fault, latency_ms, reused".split(", ")
    if name != "cost_usd"
]
INSERT = f"""
INSERT INTO generation ({COLUMNS}) VALUES ({", ".join("?" * len(COLUMNS.split(", ")))})
ON CONFLICT (cell, item, seed) DO UPDATE SET
    {", ".join(f"{name} = excluded.{name}" for name in REPLACED)}, attempts = attempts + excluded.attempts,
    cost_usd = CASE WHEN coalesce(cost_usd, excluded.cost_usd) IS NULL THEN NULL
        ELSE coalesce(cost_usd, 0) + coalesce(excluded.cost_usd, 0) END
WHERE NOT generation.answered
RETURNING id
"""

UNREAD = """
SELECT g.id, c.wrapper, g.item, g.text, g.finish_reason, g.reasoning, g.refusal, g.tool_calls, g.given_parsed,
    g.given_correct
FROM generation g JOIN cell c ON c.id = g.cell
WHERE g.answered AND NOT EXISTS (SELECT 1 FROM outcome o WHERE o.parser = ?1 AND o.generation = g.id) AND g.id > ?2
ORDER BY g.id LIMIT ?3
"""

CLUSTERS = """
SELECT id, min(id) OVER (PARTITION BY task, cluster) FROM item WHERE cluster IS NOT NULL
"""

TOTALS = """
SELECT cell, sum(answered), sum(NOT answered), count(DISTINCT item),
    avg(CASE WHEN answered THEN prompt_tokens END), avg(CASE WHEN answered THEN completion_tokens END),
    CASE WHEN count(finish_reason) > 0 THEN coalesce(sum(finish_reason = 'length'), 0) END,
    sum(given_parsed IS NOT NULL)
FROM generation GROUP BY cell ORDER BY cell
"""

_BIT = f"((g.seed % {SEEDS_A_WORD} + {SEEDS_A_WORD}) % {SEEDS_A_WORD})"
"""A seed's place in its set of seeds; `%` of a negative seed is negative."""
_VALUE = "g.cell, g.item, parsed, said, right, word"
TALLIES = f"""
SELECT g.cell, g.item, (g.seed - {_BIT}) / {SEEDS_A_WORD} AS word, sum(1 << {_BIT}),
    sum((g.finish_reason IS 'length') << {_BIT}), o.outcome = 'parsed' AS parsed, coalesce(o.correct, -1) AS right,
    CASE WHEN o.outcome = 'parsed' THEN o.value END AS said
FROM generation g JOIN outcome o ON o.parser = ?1 AND o.generation = g.id
GROUP BY {_VALUE} ORDER BY {_VALUE}
"""

VALUES = """
SELECT g.item, CASE WHEN o.outcome = 'parsed' THEN o.value END AS said, count(*)
FROM generation g JOIN outcome o ON o.parser = ?1 AND o.generation = g.id
WHERE g.cell = ?2 GROUP BY g.item, said ORDER BY g.item
"""

ANSWERED_BY = """
SELECT 1 FROM cell c JOIN generation g ON g.cell = c.id AND g.answered WHERE c.model = ?1 LIMIT 1
"""

REASONS = """
SELECT g.cell, CASE o.outcome WHEN 'ambiguous' THEN coalesce(o.reason, 'conflicting_answers') ELSE o.reason END AS why,
    count(*), min(g.id)
FROM generation g JOIN outcome o ON o.parser = ?1 AND o.generation = g.id
WHERE o.outcome <> 'parsed' GROUP BY g.cell, why ORDER BY g.cell, count(*) DESC, why
"""

SPREADS = """
WITH family AS (
    SELECT model, task, arm, count(*) AS wrappers FROM cell c
    WHERE EXISTS (SELECT 1 FROM generation g WHERE g.cell = c.id) GROUP BY model, task, arm
),
spread AS (
    SELECT min(c.id) AS cell, g.item AS item, g.seed AS seed,
        max(g.prompt_tokens) - min(g.prompt_tokens) AS width, avg(g.prompt_tokens) AS mean
    FROM generation g JOIN cell c ON c.id = g.cell
    JOIN family f ON f.model = c.model AND f.task = c.task AND f.arm = c.arm
    WHERE g.answered AND g.prompt_tokens IS NOT NULL
    GROUP BY c.model, c.task, c.arm, g.item, g.seed
    HAVING count(*) > 1 AND count(*) = f.wrappers AND max(g.prompt_tokens) > 0
)
SELECT cell, item, seed, width / mean FROM spread
"""

COUNTS = """
SELECT coalesce(sum(answered), 0) AS answered, coalesce(sum(NOT answered), 0) AS missing,
    coalesce(sum(attempts), 0) + (SELECT count(*) FROM call) AS attempts,
    coalesce(sum(max(attempts - 1, 0)), 0) AS retries,
    coalesce(sum(prompt_tokens), 0) AS prompt_tokens, coalesce(sum(completion_tokens), 0) AS completion_tokens,
    CASE WHEN count(cost_usd) + (SELECT count(cost_usd) FROM call) > 0
        THEN total(cost_usd) + (SELECT total(cost_usd) FROM call) END AS cost_usd,
    (SELECT count(*) FROM call) AS preflight_calls, coalesce(sum(reused IS NOT NULL), 0) AS reused
FROM generation
"""

REPLY = f"""
SELECT {REPLY_COLUMNS}, s.body FROM generation g LEFT JOIN sending s ON s.id = g.sending WHERE g.id = ?1
"""

RATE = """
SELECT a.started FROM attempt a JOIN generation g ON g.id = a.generation JOIN cell c ON c.id = g.cell
WHERE c.model = ?1 AND a.fault IS NULL ORDER BY a.rowid DESC LIMIT 500
"""

UPSTREAMS = """
SELECT c.model, a.server, g.provider, g.model_returned, g.system_fingerprint, count(*)
FROM generation g JOIN cell c ON c.id = g.cell JOIN attempt a ON a.generation = g.id AND a.fault IS NULL
WHERE g.answered GROUP BY 1, 2, 3, 4, 5 ORDER BY 6 DESC
"""

SAMPLE = """
SELECT c.model, c.task, i.item, c.wrapper, g.seed, p.messages, g.text, i.gold, g.finish_reason
FROM generation g JOIN cell c ON c.id = g.cell JOIN item i ON i.id = g.item LEFT JOIN prompt p ON p.digest = g.prompt
WHERE g.id = ?1
"""

ROWS = """
SELECT g.id, g.item, c.model, c.task, i.item, c.wrapper, c.arm, g.seed, g.answered, g.text, g.finish_reason,
    g.reasoning, g.refusal, g.tool_calls, g.prompt_tokens, g.completion_tokens, g.given_parsed, g.given_correct,
    i.subject, i.cluster, g.extra
FROM generation g JOIN cell c ON c.id = g.cell JOIN item i ON i.id = g.item
WHERE g.id > ?1 ORDER BY g.id LIMIT ?2
"""

OUTCOMES = """
SELECT c.model, c.task, i.item, c.wrapper, c.arm, g.seed, q.name AS parser,
    CASE WHEN g.answered THEN o.outcome ELSE 'missing' END AS outcome, o.value, i.gold, o.correct, o.reason, o.needed,
    g.finish_reason, g.prompt_tokens, g.completion_tokens
FROM generation g JOIN cell c ON c.id = g.cell JOIN item i ON i.id = g.item CROSS JOIN parser q
LEFT JOIN outcome o ON o.parser = q.id AND o.generation = g.id
ORDER BY g.id, q.id
"""
