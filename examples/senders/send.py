# SPDX-License-Identifier: Apache-2.0

import json
from datetime import datetime, timezone

import boto3

sqs = boto3.client("sqs")


def changed(article: dict) -> dict:
    """The event of a changed article. Its version is the time of the change."""
    data = {k: v for k, v in article.items() if k not in ("id", "updated_at")}
    return {
        "type": "doc.changed",
        "subject": article["id"],
        "sequence": version(article["updated_at"]),
        "data": data,
    }


def deleted(id: str, at: datetime) -> dict:
    """The event of a delete. A delete is a version too: at is when the article was deleted."""
    return {"type": "doc.deleted", "subject": id, "sequence": version(at)}


def version(at: datetime) -> str:
    return at.astimezone(timezone.utc).isoformat(timespec="microseconds")


def send(queue: str, event: dict) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody=json.dumps(event))


def send_all(queue: str, events: list[dict]) -> None:
    """Sends ten events in a request. SQS may refuse some of them and take the others."""
    for start in range(0, len(events), 10):
        entries = [
            {"Id": str(i), "MessageBody": json.dumps(event)}
            for i, event in enumerate(events[start : start + 10])
        ]
        answer = sqs.send_message_batch(QueueUrl=queue, Entries=entries)
        if answer.get("Failed"):
            failed = answer["Failed"]
            raise RuntimeError(f"SQS refused {len(failed)} of {len(entries)} events: {failed[0]['Code']}")
