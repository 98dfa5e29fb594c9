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

const { values } = parseArgs({
  options: {
    port: { type: "string", default: "8090" },
    gateway: { type: "string" },
  },
});

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
  onward.on("error", () =>
    answer.headersSent ? answer.destroy() : answer.writeHead(502).end(),
  );
  answer.on("close", () => onward.destroy());
  asked.pipe(onward);
}

server.listen(Number(values.port), "127.0.0.1", () =>
  console.log(`demo page  http://127.0.0.1:${server.address().port}/`),
);
