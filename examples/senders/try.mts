// SPDX-License-Identifier: Apache-2.0

// Sends the events that the test expects: one change, one delete, and twelve changes.
import { changed, deleted, send, sendAll } from "./send.js";

const queue = process.argv[2]!;
const at = (second: number) => new Date(Date.UTC(2026, 10, 20, 16, 0, second, 123));
await send(queue, changed({ id: "f4c394f9", title: "Renew a bus pass", updatedAt: at(0) }));
await send(queue, deleted("f4c394f9", at(1)));
await sendAll(
  queue,
  Array.from({ length: 12 }, (_, i) => changed({ id: `a-${i}`, title: `Article ${i}`, updatedAt: at(i) })),
);
