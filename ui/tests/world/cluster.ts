// A real cluster: three nodes of the built `kunci` on loopback ports, in a temporary folder, for as long as a test needs it.
import { spawn, type ChildProcess } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { ClusterBody, Listed } from "../../src/api/types";

export const KUNCI = resolve(process.env["KUNCI_BINARY"] ?? "../target/debug/kunci");
const NODES = 3;
/** Nodes are ten ports apart, and have three each. */
const PORTS = [0, 1, 2, 10, 11, 12, 20, 21, 22];

export class Cluster {
  private readonly stopped = new Set<number>();

  private constructor(
    private readonly process: ChildProcess,
    private readonly folder: string,
    private readonly base: number,
  ) {}

  static async start(): Promise<Cluster> {
    const folder = mkdtempSync(join(tmpdir(), "kunci-ui-"));
    const base = await freePorts();
    const arguments_ = ["dev-cluster", "--nodes", String(NODES), "--data", folder, "--base-port", String(base)];
    const child = spawn(KUNCI, arguments_, { stdio: ["ignore", "pipe", "pipe"] });
    let said = "";
    child.stderr?.on("data", (text: Buffer) => (said += text.toString()));
    // It tells what it made once all nodes are members; one that is killed before that ends it.
    let made = false;
    child.stdout?.on("data", () => (made = true));
    const cluster = new Cluster(child, folder, base);
    try {
      await until("the cluster has a leader, three healthy voters, and no warning", async () => {
        if (child.exitCode !== null) throw new Error(`dev-cluster ended: ${said}`);
        const body = made ? await cluster.body(0) : null;
        return body?.leader != null && body.nodes.length === NODES && body.warnings.length === 0;
      });
    } catch (error) {
      await cluster.stop();
      throw error;
    }
    return cluster;
  }

  /** The HTTP address of node `index`, from 0. */
  url(index: number): string {
    return `http://127.0.0.1:${this.base + 10 * index}`;
  }

  native(index: number): { host: string; port: number } {
    return { host: "127.0.0.1", port: this.base + 10 * index + 1 };
  }

  /** What node `index` says of the cluster; null when it doesn't answer. */
  async body(index: number): Promise<ClusterBody | null> {
    try {
      const response = await fetch(`${this.url(index)}/cluster`, { signal: AbortSignal.timeout(1_000) });
      return (await response.json()) as ClusterBody;
    } catch {
      return null;
    }
  }

  /** The index of the node that leads, by a node that runs. */
  async leader(): Promise<number> {
    let found = -1;
    await until("somebody leads", async () => {
      for (let index = 0; index < NODES; index += 1) {
        const body = this.stopped.has(index) ? null : await this.body(index);
        const leader = body?.nodes.find((node) => node.id === body.leader);
        if (leader) {
          found = (Number(leader.http.split(":").at(-1)) - this.base) / 10;
          return !this.stopped.has(found);
        }
      }
      return false;
    });
    return found;
  }

  /** The id that the cluster gave node `index`. */
  async id(index: number): Promise<number> {
    let id: number | null = null;
    await until(`node ${index} says its id`, async () => (id = (await this.body(index))?.nodeId ?? null) !== null);
    return id ?? 0;
  }

  signal(index: number, signal: NodeJS.Signals): void {
    const pid = Number(readFileSync(join(this.folder, `node-${index}`, "pid"), "utf8"));
    process.kill(pid, signal);
    if (signal === "SIGCONT") this.stopped.delete(index);
    else this.stopped.add(index);
  }

  async acquire(resource: string, owner: string, more: object = {}): Promise<{ leaseId: string; fencingToken: number }> {
    const body = { clientId: owner, leaseDurationMs: 600_000, ...more };
    return (await this.post(`/locks/${encodeURIComponent(resource)}/acquire`, body)) as never;
  }

  async release(resource: string, leaseId: string): Promise<void> {
    await this.post(`/locks/${encodeURIComponent(resource)}/release`, { leaseId });
  }

  async status(resource: string): Promise<Listed> {
    const response = await fetch(`${this.url(0)}/locks/${encodeURIComponent(resource)}`);
    return (await response.json()) as Listed;
  }

  private async post(path: string, body: object): Promise<unknown> {
    const response = await fetch(`${this.url(0)}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${path} was answered ${response.status}: ${text}`);
    return JSON.parse(text);
  }

  /** What each node said, for whoever looks why a test failed. */
  keepLogs(folder: string): void {
    mkdirSync(folder, { recursive: true });
    for (let index = 0; index < NODES; index += 1) {
      copyFileSync(join(this.folder, `node-${index}`, "log"), join(folder, `node-${index}.log`));
    }
  }

  async stop(): Promise<void> {
    for (const index of this.stopped) {
      try {
        this.signal(index, "SIGCONT");
      } catch {
        // It was killed.
      }
    }
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    if (this.process.exitCode === null) {
      this.process.kill("SIGTERM");
      const late = setTimeout(() => this.process.kill("SIGKILL"), 10_000);
      await ended;
      clearTimeout(late);
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export async function until(what: string, isSo: () => Promise<boolean>, withinMs = 20_000): Promise<void> {
  const end = Date.now() + withinMs;
  while (Date.now() < end) {
    if (await isSo()) return;
    await new Promise((wake) => setTimeout(wake, 50));
  }
  throw new Error(`${withinMs / 1000} s passed, and still not: ${what}`);
}

async function freePorts(): Promise<number> {
  for (let tries = 0; tries < 50; tries += 1) {
    const base = 21_000 + 30 * Math.floor(Math.random() * 300);
    const free = await Promise.all(PORTS.map((offset) => isFree(base + offset)));
    if (free.every(Boolean)) return base;
  }
  throw new Error("found no free ports on loopback");
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
