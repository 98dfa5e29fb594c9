/**
 * Serves the demo page on loopback: `node web_demo/serve.mjs [--port 8090] [--gateway URL]`.
 *
 * Only what the page is made of is served. With a gateway, /v1 goes on to it, so that the page needs
 * no leave to call another origin.
 */

import { createReadStream } from "node:fs";
import { createServer, request } from "node:http";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const SERVED = /^\/(web_demo|sdk\/js\/dist)\/[\w-]+\.(html|css|js)$/;
const KINDS = {
  ".html": "text/html",
  ".css": "text/css",
  ".js": "text/javascript",
};

const values = read();

const server = createServer((asked, answer) => {
  const { pathname } = new URL(asked.url, "http://page");
  if (pathname.startsWith("/v1/") && values.gateway) return goOn(asked, answer);
  if (pathname === "/")
    return answer.writeHead(302, { location: "/web_demo/index.html" }).end();
  if (!SERVED.test(pathname)) return answer.writeHead(404).end();
  const file = createReadStream(ROOT + pathname);
  file.on("error", () => answer.writeHead(404).end());
  file.on("open", () => {
    answer.writeHead(200, {
      "content-type": `${KINDS[extname(pathname)]}; charset=utf-8`,
    });
    file.pipe(answer);
  });
});

/** The options; ends the process with what is wrong with them. */
function read() {
  try {
    const { values } = parseArgs({
      options: {
        port: { type: "string", default: "8090" },
        gateway: { type: "string" },
      },
    });
    if (!/^\d+$/.test(values.port) || values.port > 65535)
      throw new Error(`--port ${values.port}: must be 0 to 65535`);
    if (values.gateway && !/^http:\/\/./.test(values.gateway))
      throw new Error(`--gateway ${values.gateway}: must begin with http://`);
    return values;
  } catch (error) {
    return refuse(error.message);
  }
}

function refuse(why) {
  console.error(`demo page: ${why}`);
  process.exit(1);
}

/** To the gateway and back, unchanged; whoever leaves is left there too. */
function goOn(asked, answer) {
  const { method, headers, url } = asked;
  const onward = request(
    new URL(url, values.gateway),
    { method, headers },
    (came) => {
      answer.writeHead(came.statusCode, came.headers);
      answer.flushHeaders();
      came.pipe(answer);
    },
  );
  onward.on("error", () => {
    if (answer.headersSent) return answer.destroy();
    const message = `no gateway answers at ${values.gateway}`;
    answer.writeHead(502, { "content-type": "application/json" });
    answer.end(JSON.stringify({ error: { message } }));
  });
  answer.on("close", () => onward.destroy());
  asked.pipe(onward);
}

server.on("error", (error) =>
  refuse(
    error.code === "EADDRINUSE"
      ? `port ${values.port} is in use; choose another: make demo-page ARGS="--port 0"`
      : error.message,
  ),
);
server.listen(Number(values.port), "127.0.0.1", () =>
  console.log(`demo page  http://127.0.0.1:${server.address().port}/`),
);
