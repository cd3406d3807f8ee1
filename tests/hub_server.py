"""A server on loopback that answers like the Hugging Face hub, as far as its client asks for data sets.

As on the hub, a file's address answers with a redirect to a store of another origin, where no token has any business.
"""

from __future__ import annotations

import hashlib
import io
import json
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

Files = dict[str, bytes]

_TEXT, _TEXTS = pa.string(), pa.list_(pa.string())
_OPTIONS = pa.struct([("text", _TEXTS), ("label", _TEXTS)])
_LABELLED = pa.struct([("label", _TEXTS), ("text", _TEXTS)])

SCHEMAS: dict[str, pa.Schema] = {
    "google/boolq": pa.schema([("question", _TEXT), ("answer", pa.bool_()), ("passage", _TEXT)]),
    "ybisk/piqa": pa.schema([("goal", _TEXT), ("sol1", _TEXT), ("sol2", _TEXT), ("label", pa.int64())]),
    "allenai/ai2_arc": pa.schema([("id", _TEXT), ("question", _TEXT), ("choices", _OPTIONS), ("answerKey", _TEXT)]),
    "Rowan/hellaswag": pa.schema([
        ("ind", pa.int32()), ("activity_label", _TEXT), ("ctx_a", _TEXT), ("ctx_b", _TEXT), ("ctx", _TEXT),
        ("endings", _TEXTS), ("source_id", _TEXT), ("split", _TEXT), ("split_type", _TEXT), ("label", _TEXT),
    ]),
    "allenai/winogrande": pa.schema([
        ("sentence", _TEXT), ("option1", _TEXT), ("option2", _TEXT), ("answer", _TEXT),
    ]),
    "tau/commonsense_qa": pa.schema([
        ("id", _TEXT), ("question", _TEXT), ("question_concept", _TEXT), ("choices", _LABELLED), ("answerKey", _TEXT),
    ]),
    "openai/gsm8k": pa.schema([("question", _TEXT), ("answer", _TEXT)]),
    "cais/mmlu": pa.schema([("question", _TEXT), ("subject", _TEXT), ("choices", _TEXTS), ("answer", pa.int64())]),
    "allenai/openbookqa": pa.schema([
        ("id", _TEXT), ("question_stem", _TEXT), ("choices", _OPTIONS), ("answerKey", _TEXT),
    ]),
    "PolyAI/banking77": pa.schema([("text", _TEXT), ("label", pa.int64())]),
}  # fmt: skip
"""The columns of each set, as its card gives them."""


def parquet(repo: str, rows: list[dict[str, Any]], classes: dict[str, Any] | None = None) -> bytes:
    """A Parquet file with the columns of `repo`. `classes` (column -> names) go into the metadata beside the schema,
    where the hub's own library keeps them."""
    features = {name: {"names": names, "_type": "ClassLabel"} for name, names in (classes or {}).items()}
    told = {"huggingface": json.dumps({"info": {"features": features}})}
    return written(pa.Table.from_pylist(rows, schema=SCHEMAS[repo].with_metadata(told)))


def written(table: pa.Table) -> bytes:
    """Any table as a Parquet file."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


@dataclass(frozen=True)
class Seen:
    """One request: where it went (`hub` or `store`), what it asked for, and the Authorization header."""

    server: str
    method: str
    path: str
    token: str | None


class HubServer:
    """The two servers, each in a thread. `url` is what goes into HF_ENDPOINT, `seen` every request so far.

    `refuse` is a status and an error code for every answer, `refuse_files` the same for files only: a gated set is
    listed for everybody.
    """

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.refuse: tuple[int, str] | None = None
        self.refuse_files: tuple[int, str] | None = None
        self._commits: dict[str, dict[str, Files]] = {}
        self._refs: dict[str, dict[str, str]] = {}
        self._servers = {name: ThreadingHTTPServer(("127.0.0.1", 0), _handler(self, name)) for name in ("hub", "store")}

    def __enter__(self) -> HubServer:
        for server in self._servers.values():
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers.values():
            server.shutdown()
            server.server_close()

    @property
    def url(self) -> str:
        """The hub's address."""
        return f"http://127.0.0.1:{self._servers['hub'].server_port}"

    @property
    def downloads(self) -> list[str]:
        """What was fetched from the store, in order."""
        return [request.path for request in self.seen if (request.server, request.method) == ("store", "GET")]

    def push(self, repo: str, files: Files, revision: str = "main") -> str:
        """A commit that holds these files, at the tip of a branch; returns its sha."""
        told = json.dumps([repo, {name: hashlib.sha1(data).hexdigest() for name, data in files.items()}])
        commit = hashlib.sha1(told.encode()).hexdigest()
        self._commits.setdefault(repo, {})[commit] = files
        self._refs.setdefault(repo, {})[revision] = commit
        return commit

    def answer(self, server: str, path: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body."""
        if self.refuse:
            return _refusal(*self.refuse)
        parts = [unquote(part) for part in urlsplit(path).path.strip("/").split("/")]
        match parts:
            case ["api", "datasets", owner, name, "revision", revision]:
                return self._info(f"{owner}/{name}", revision)
            case ["api", "datasets", owner, name, "tree", revision]:
                return self._tree(f"{owner}/{name}", revision)
            case ["datasets", owner, name, "resolve", revision, *file]:
                return self._file(server, f"{owner}/{name}", revision, "/".join(file))
            case _:
                return _refusal(404, "")

    def _commit(self, repo: str, revision: str) -> str | None:
        """The commit of a branch or of its own sha."""
        commit = self._refs[repo].get(revision, revision)
        return commit if commit in self._commits[repo] else None

    def _info(self, repo: str, revision: str) -> tuple[int, dict[str, str], bytes]:
        if repo not in self._refs:
            return _refusal(404, "RepoNotFound")
        commit = self._commit(repo, revision)
        if commit is None:
            return _refusal(404, "RevisionNotFound")
        siblings = [{"rfilename": name} for name in self._commits[repo][commit]]
        return _json({"id": repo, "sha": commit, "siblings": siblings, "private": False, "tags": []})

    def _tree(self, repo: str, revision: str) -> tuple[int, dict[str, str], bytes]:
        files = self._commits[repo][self._commit(repo, revision) or ""]
        return _json([
            {"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
            for name, data in files.items()
        ])  # fmt: skip

    def _file(self, server: str, repo: str, revision: str, name: str) -> tuple[int, dict[str, str], bytes]:
        if self.refuse_files:
            return _refusal(*self.refuse_files)
        commit = self._commit(repo, revision) or ""
        data = self._commits[repo][commit][name]
        etag = f'"{hashlib.sha256(data).hexdigest()}"'
        if server == "store":
            return 200, {"ETag": etag}, data
        store = f"http://127.0.0.1:{self._servers['store'].server_port}/datasets/{repo}/resolve/{commit}/{name}"
        linked = {"X-Linked-Etag": etag, "X-Linked-Size": str(len(data))}
        return 302, {"Location": store, "X-Repo-Commit": commit, **linked}, b""


def _json(value: Any) -> tuple[int, dict[str, str], bytes]:
    return 200, {"Content-Type": "application/json"}, json.dumps(value).encode()


def _refusal(status: int, code: str) -> tuple[int, dict[str, str], bytes]:
    return status, {"X-Error-Code": code, "X-Error-Message": "no"}, b'{"error": "no"}'


def _handler(hub: HubServer, name: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            hub.seen.append(Seen(name, self.command, self.path, self.headers.get("Authorization")))
            status, headers, body = hub.answer(name, self.path)
            self.send_response(status)
            for header, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(header, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

    return Handler
