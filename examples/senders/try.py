# SPDX-License-Identifier: Apache-2.0

"""Sends the events that the test expects: one change, one delete, and twelve changes."""

import sys
from datetime import datetime, timezone

from send import changed, deleted, send, send_all

queue = sys.argv[1]


def at(second: int) -> datetime:
    return datetime(2026, 11, 20, 16, 0, second, 123000, tzinfo=timezone.utc)


send(queue, changed({"id": "f4c394f9", "title": "Renew a bus pass", "updated_at": at(0)}))
send(queue, deleted("f4c394f9", at(1)))
send_all(queue, [changed({"id": f"a-{i}", "title": f"Article {i}", "updated_at": at(i)}) for i in range(12)])
