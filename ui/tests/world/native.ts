// Many locks and many waiters at once, over one connection of the native protocol. Request ids make a line that is sent again,
// since a busy machine refused it or elected another leader, take effect once.
import { randomUUID } from "node:crypto";
import { connect, type Socket } from "node:net";
import { until, type Cluster } from "./cluster";

/** The door takes 4,096 requests in flight. */
const IN_FLIGHT = 2_000;
/** What wasn't answered as wanted by then is sent again. */
const AGAIN_AFTER_MS = 2_000;

export class Native {
  private tags = 0;
  /** The tags of requests that were granted. */
  private readonly granted = new Set<number>();

  private constructor(
    private readonly cluster: Cluster,
    private socket: Socket,
  ) {}

  /** Connected to the leader. */
  static async open(cluster: Cluster): Promise<Native> {
    const native = new Native(cluster, await toLeader(cluster));
    native.listen();
    return native;
  }

  /** Each of the resources gets a holder. */
  async hold(resources: string[], owner: (index: number) => string, seconds = 3_000): Promise<void> {
    for (let at = 0; at < resources.length; at += IN_FLIGHT) {
      const lines = resources.slice(at, at + IN_FLIGHT).map((name, index) => ({
        tag: (this.tags += 1),
        text: `A ${name} ${seconds} try req=${randomUUID()} owner=${owner(at + index)}`,
      }));
      await this.sendUntil("the locks are held", lines, async () => lines.every(({ tag }) => this.granted.has(tag)));
    }
  }

  /** So many more wait for the resource, until this is closed; then they keep their places for the waiter grace. */
  async queue(resource: string, count: number, owner: (index: number) => string): Promise<void> {
    const before = (await this.cluster.status(resource)).queueLength;
    const lines = Array.from({ length: count }, (_, index) => ({
      tag: (this.tags += 1),
      text: `A ${resource} 30 1800 req=${randomUUID()} owner=${owner(index)}`,
    }));
    const wait = async () => (await this.cluster.status(resource)).queueLength >= before + count;
    await this.sendUntil("all of them wait", lines, wait);
  }

  close(): void {
    this.socket.destroy();
  }

  private async sendUntil(what: string, lines: { tag: number; text: string }[], isSo: () => Promise<boolean>): Promise<void> {
    let sentAt = 0;
    await until(
      what,
      async () => {
        if (await isSo()) return true;
        if (Date.now() - sentAt > AGAIN_AFTER_MS) {
          if (sentAt > 0) await this.reconnect();
          const left = lines.filter(({ tag }) => !this.granted.has(tag));
          this.socket.write(left.map(({ tag, text }) => `${text} #${tag}\n`).join(""));
          sentAt = Date.now();
        }
        return false;
      },
      30_000,
    );
  }

  /** Another node may lead by now. Who waits comes back over the new connection. */
  private async reconnect(): Promise<void> {
    const old = this.socket;
    this.socket = await toLeader(this.cluster);
    this.listen();
    old.destroy();
  }

  private listen(): void {
    let rest = "";
    this.socket.on("error", () => {});
    this.socket.on("data", (bytes: Buffer) => {
      const lines = (rest + bytes.toString()).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line.startsWith("A A ")) this.granted.add(Number(line.slice(line.lastIndexOf("#") + 1)));
      }
    });
  }
}

async function toLeader(cluster: Cluster): Promise<Socket> {
  const socket = connect(cluster.native(await cluster.leader()));
  await new Promise<void>((resolve, reject) => {
    socket.once("connect", resolve);
    socket.once("error", reject);
  });
  return socket;
}
