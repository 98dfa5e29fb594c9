/** A server on a loopback port whose answers are written by hand. */

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Exchange {
  request: IncomingMessage;
  body: Record<string, unknown>;
  response: ServerResponse;
  /** Resolves when the connection of this exchange is over; whether the answer was whole. */
  closed: Promise<boolean>;
}

/** `answer` is told each request; the address, and how to stop. */
export async function serve(answer: (exchange: Exchange) => void) {
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const piece of request) text += piece;
    const closed = new Promise<boolean>((resolve) => {
      response.on("close", () => resolve(response.writableFinished));
    });
    answer({ request, body: text ? JSON.parse(text) : {}, response, closed });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const stop = () => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  };
  return { url: `http://127.0.0.1:${port}/v1`, stop };
}

export const SSE = { "content-type": "text/event-stream; charset=utf-8", "x-request-id": "r-1" };

/** One event with a chunk of one choice. */
export function event(content: string, finish: string | null = null): string {
  const choices = [{ index: 0, delta: { content }, finish_reason: finish }];
  const chunk = { id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices };
  return `data: ${JSON.stringify(chunk)}\n\n`;
}
