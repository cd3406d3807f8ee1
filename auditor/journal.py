"""From finished generations to the store: whatever is queued is committed as soon as the loop is free."""

from __future__ import annotations

import asyncio

from auditor.records import Generation
from auditor.store import Store


class Journal:
    """Commits whatever is queued as soon as the loop is free, in one transaction, without a timer."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._queue: list[tuple[Generation, asyncio.Future[None]]] = []

    async def commit(self, generation: Generation) -> None:
        """Returns when the generation is in the journal."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._queue.append((generation, done))
        if len(self._queue) == 1:
            loop.call_soon(self._flush)
        await done

    def _flush(self) -> None:
        queue, self._queue = self._queue, []
        try:
            self._store.append([generation for generation, _ in queue])
        except Exception as error:  # whatever it is, a worker that waits for ever would be worse
            for _, done in queue:
                if not done.done():
                    done.set_exception(error)
            return
        for _, done in queue:
            if not done.done():
                done.set_result(None)

    def abandon(self, generation: Generation) -> None:
        """What was in flight when the run ended is missing, and its attempts count. At once: nothing waits for it."""
        self._store.append([generation])
