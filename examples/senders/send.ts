// SPDX-License-Identifier: Apache-2.0

import { SendMessageBatchCommand, SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";

export interface Article {
  id: string;
  title: string;
  updatedAt: Date; // of the last change; it is the version
}

export interface Event {
  type: "doc.changed" | "doc.deleted";
  subject: string;
  sequence: string;
  data?: object;
}

export function changed(article: Article): Event {
  const { id, updatedAt, ...data } = article;
  return { type: "doc.changed", subject: id, sequence: updatedAt.toISOString(), data };
}

// deleted is the event of a delete. A delete is a version too: at is when the article was deleted.
export function deleted(id: string, at: Date): Event {
  return { type: "doc.deleted", subject: id, sequence: at.toISOString() };
}

const sqs = new SQSClient({});

export async function send(queue: string, event: Event): Promise<void> {
  await sqs.send(new SendMessageCommand({ QueueUrl: queue, MessageBody: JSON.stringify(event) }));
}

// sendAll sends ten events in a request. SQS may refuse some of them and take the others.
export async function sendAll(queue: string, events: Event[]): Promise<void> {
  for (let from = 0; from < events.length; from += 10) {
    const entries = events.slice(from, from + 10).map((event, i) => ({
      Id: String(i),
      MessageBody: JSON.stringify(event),
    }));
    const answer = await sqs.send(new SendMessageBatchCommand({ QueueUrl: queue, Entries: entries }));
    if (answer.Failed?.length) {
      throw new Error(`SQS refused ${answer.Failed.length} of ${entries.length} events: ${answer.Failed[0]?.Code}`);
    }
  }
}
