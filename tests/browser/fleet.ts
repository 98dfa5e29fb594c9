/** A simulated worker and a real gateway in front of it, as processes that end with the tests. */

import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const PACELINE = `${ROOT}.venv/bin/paceline`;
const START_MS = 20_000;

export interface Fleet {
  readonly worker: string;
  readonly gateway: string;
  stop(): Promise<void>;
}

/** Both, for pages of `origin`. Rejects if one does not say where it listens. */
export async function startFleet(origin: string): Promise<Fleet> {
  const speculation = JSON.stringify({
    method: "eagle3",
    num_speculative_tokens: 3,
  });
  const ran: ChildProcess[] = [];
  const stop = async () => {
    for (const process of ran.reverse()) await ended(process);
  };
  const run = async (args: string[], says: RegExp, env: object = {}) => {
    const child = spawn(PACELINE, args, {
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "inherit"],
    });
    ran.push(child);
    return said(child, says);
  };
  try {
    const options = [
      "--port",
      "0",
      "--speculation",
      speculation,
      "--step-ms",
      "60",
    ];
    const worker = await run(
      ["sim-worker", ...options],
      /listening on (http\S+)/,
    );
    const config = fileURLToPath(new URL("gateway.yaml", import.meta.url));
    const environment = { PAGE_ORIGIN: origin, WORKER: worker };
    const gateway = await run(
      ["serve", "--config", config],
      /(http\S+)\/v1/,
      environment,
    );
    return { worker, gateway, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** What the first group of `says` matches in what a process prints. */
export function said(child: ChildProcess, says: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    const late = setTimeout(
      () => reject(new Error(`nothing after 20 s but: ${text}`)),
      START_MS,
    );
    child.on("exit", (code) =>
      reject(new Error(`ended with ${code}: ${text}`)),
    );
    child.stdout!.on("data", (data: Buffer) => {
      text += data.toString();
      const match = says.exec(text);
      if (!match) return;
      clearTimeout(late);
      resolve(match[1]!);
    });
  });
}

export async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  const hard = setTimeout(() => child.kill("SIGKILL"), 5000);
  await gone;
  clearTimeout(hard);
}
