/**
 * A web site on a loopback port: pages made of a script, and streams that a test writes by hand or
 * that replay a recording.
 */

import {
  createServer,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

import type { Read } from "./recording.js";

const SDK = fileURLToPath(new URL("../../sdk/js/", import.meta.url));
const SSE = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
};

/** One answer that is written by the test. */
export class HandStream {
  /** Resolves with whether the answer was whole when its connection ended. */
  readonly closed: Promise<boolean>;
  readonly #response: ServerResponse;

  constructor(response: ServerResponse) {
    this.#response = response;
    this.closed = new Promise((resolve) => {
      response.on("close", () => resolve(response.writableFinished));
    });
    response.writeHead(200, SSE);
    response.flushHeaders();
    response.socket?.setNoDelay(true);
  }

  write(data: string | Uint8Array): void {
    this.#response.write(data);
  }

  end(data = ""): void {
    this.#response.end(data);
  }

  /** Cuts the connection. */
  cut(): void {
    this.#response.destroy();
  }
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

export class Site {
  readonly origin: string;
  readonly #server;
  readonly #handlers = new Map<string, Handler>();

  private constructor(server: ReturnType<typeof createServer>) {
    this.#server = server;
    this.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on(
      "request",
      (request: IncomingMessage, response: ServerResponse) => {
        const handler = this.#handlers.get(
          new URL(request.url!, this.origin).pathname,
        );
        if (handler) return handler(request, response);
        response.writeHead(404).end();
      },
    );
  }

  static async open(): Promise<Site> {
    const server = createServer();
    await new Promise<void>((resolve) =>
      server.listen(0, "127.0.0.1", resolve),
    );
    return new Site(server);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Serves a page at `path` that runs this TypeScript; what it imports is bundled. */
  async page(path: string, entry: string): Promise<string> {
    const script = await bundled(entry);
    const html = `<!doctype html><meta charset="utf-8"><title>test</title><link rel="icon" href="data:,"><body>
      <script type="module" src="${path}.js"></script>`;
    this.#handlers.set(path, (_, response) => {
      response
        .writeHead(200, { "content-type": "text/html; charset=utf-8" })
        .end(html);
    });
    this.#handlers.set(`${path}.js`, (_, response) => {
      response
        .writeHead(200, { "content-type": "text/javascript; charset=utf-8" })
        .end(script);
    });
    return this.origin + path;
  }

  /** The next request for chat completions under `/NAME/v1`, to be answered by hand. */
  hand(name: string): Promise<HandStream> {
    return new Promise((resolve) => {
      this.#handlers.set(`/${name}/v1/chat/completions`, (_, response) =>
        resolve(new HandStream(response)),
      );
    });
  }

  /** Answers requests under `/NAME/v1` with these reads, each at its time. */
  replay(name: string, reads: readonly Read[]): void {
    this.#handlers.set(`/${name}/v1/chat/completions`, (_, response) => {
      const stream = new HandStream(response);
      const timers = reads.map(({ atMs, data }, at) =>
        setTimeout(
          () =>
            at === reads.length - 1 ? stream.end(data) : stream.write(data),
          atMs,
        ),
      );
      void stream.closed.then(() => timers.forEach(clearTimeout));
    });
  }
}

async function bundled(entry: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL(entry, import.meta.url))],
    bundle: true,
    format: "esm",
    target: "es2022",
    write: false,
    logLevel: "error",
    define: { "process.env.NODE_ENV": '"development"' },
    // The packages are the SDK's, and so is what is tested: as built.
    nodePaths: [`${SDK}node_modules`],
    alias: {
      paceline: `${SDK}dist/index.js`,
      "paceline/dom": `${SDK}dist/dom.js`,
      "paceline/react": `${SDK}dist/react.js`,
    },
    jsx: "automatic",
  });
  return outputFiles[0]!.text;
}
