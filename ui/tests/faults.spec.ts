// What goes wrong shows within five seconds: a dead leader, a node that is silent, a lost quorum, a hot queue, a stopped holder.
import { spawn } from "node:child_process";
import { Cluster, KUNCI, until } from "./world/cluster";
import { Native } from "./world/native";
import { expect, screens, test as base } from "./world/test";

/** From the fault to its being visible. */
const SEEN_MS = 5_000;

/** A cluster of its own for each test: they break it. */
const test = base.extend<{ own: Cluster }>({
  own: async ({ complaints }, use, info) => {
    const cluster = await Cluster.start();
    await use(cluster);
    if (info.status !== info.expectedStatus) cluster.keepLogs(info.outputPath("nodes"));
    await cluster.stop();
    // A node that is gone makes the browser complain.
    complaints.length = 0;
  },
});

test("a leader that dies is seen, and who leads then", async ({ page, own }) => {
  const leader = await own.leader();
  const follower = (leader + 1) % 3;
  const id = await own.id(leader);
  const native = await Native.open(own);
  await native.hold(Array.from({ length: 400 }, (_, index) => `orders/${index}`), (index) => `worker-${index % 20}`);
  native.close();
  await page.goto(`${own.url(follower)}/`);
  await expect(page.locator(`tr[data-node="${id}"]`)).toHaveAttribute("data-role", "leader");
  own.signal(leader, "SIGKILL");
  const dead = page.locator(`tr[data-node="${id}"][data-healthy=false]`);
  await expect(dead).toBeVisible({ timeout: SEEN_MS });
  await expect(page.locator("tr[data-role=leader][data-healthy=true]")).toHaveCount(1, { timeout: SEEN_MS });
  await expect(page.locator(".banner")).toContainText(`node ${id} isn't heard of`);
  await expect(page.locator(".tile", { hasText: "last election" })).toContainText(`node ${id} → node`, { timeout: SEEN_MS });
  // Rates need a few samples.
  await expect(page.locator(".tile", { hasText: "grants" })).toContainText("/s");
  await screens(page, "leader-dead");
});

test("a node that dies says so on its own page, which leads to the others", async ({ page, own }) => {
  const leader = await own.leader();
  const other = await own.id((leader + 1) % 3);
  await page.goto(`${own.url(leader)}/`);
  await expect(page.locator("[data-state=live]")).toBeVisible();
  own.signal(leader, "SIGKILL");
  await expect(page.locator("[data-state='no answer']")).toBeVisible({ timeout: SEEN_MS });
  await expect(page.locator(".banner [data-trouble=bad]")).toContainText("doesn't answer");
  await expect(page.locator("[data-old=true]")).toBeVisible({ timeout: SEEN_MS });
  await screens(page, "node-dead");
  await page.locator(".banner").getByRole("link", { name: `node ${other}` }).click();
  await expect(page.locator("[data-state=live]")).toBeVisible();
});

test("a node that hangs is told from one that answers", async ({ page, own }) => {
  await page.goto(`${own.url(2)}/#/locks`);
  await expect(page.locator("[data-state=live]")).toBeVisible();
  own.signal(2, "SIGSTOP");
  await expect(page.locator("[data-state='no answer']")).toBeVisible({ timeout: SEEN_MS });
  own.signal(2, "SIGCONT");
  await expect(page.locator("[data-state=live]")).toBeVisible({ timeout: 10_000 });
  await expect(page.locator(".banner [data-trouble=bad]")).toHaveCount(0, { timeout: 10_000 });
});

test("without a quorum the page says that nobody leads, and that what it shows is old", async ({ page, own }) => {
  await own.acquire("quorum/a", "worker-1");
  await page.goto(`${own.url(0)}/#/locks`);
  await expect(page.locator(".rows .body .row")).toHaveCount(1);
  own.signal(1, "SIGKILL");
  own.signal(2, "SIGKILL");
  await expect(page.locator("[data-state='no leader']")).toBeVisible({ timeout: SEEN_MS });
  await expect(page.locator(".banner [data-trouble=bad]")).toContainText("No leader");
  await expect(page.locator(".note.bad")).toContainText(/no_leader|no_quorum/, { timeout: 8_000 });
  await expect(page.locator("[data-old=true]")).toBeVisible({ timeout: 8_000 });
  // What was seen last stays.
  await expect(page.locator(".rows .body .row")).toContainText("quorum/a");
  await screens(page, "no-leader");
});

test("a queue that fills and a holder that is stopped are seen, and the next one gets the lock", async ({ page, own }) => {
  await page.goto(`${own.url(0)}/#/hot`);
  const command = ["exec", "jobs/nightly", "--ttl", "6s", "--owner", "worker-stopped", "--", "sleep", "120"];
  const holder = spawn(KUNCI, ["exec", "--url", own.url(0), ...command.slice(1)], { stdio: "ignore", detached: true });
  const signal = (name: NodeJS.Signals) => process.kill(-(holder.pid ?? 0), name);
  try {
    await until("the holder has the lock", async () => (await own.status("jobs/nightly")).held === true);
    const native = await Native.open(own);
    await native.queue("jobs/nightly", 500, (index) => `worker-${index}`);
    const hottest = page.locator(".rows .body .row").first();
    await expect(hottest).toContainText("jobs/nightly", { timeout: SEEN_MS });
    await expect(hottest.locator(".waiting")).toHaveText("500", { timeout: SEEN_MS });
    await screens(page, "hot-queue");

    signal("SIGSTOP");
    await page.goto(`${own.url(0)}/#/expiring`);
    const late = page.locator(".rows .body .row", { hasText: "worker-stopped" });
    await expect(late.locator(".bar.warn")).toBeVisible({ timeout: 6_000 + SEEN_MS });
    await screens(page, "holder-stopped");
    await page.goto(`${own.url(0)}/#/lock/jobs%2Fnightly`);
    const past = page.getByRole("table", { name: "History" }).locator(".body .row");
    await expect(past.filter({ hasText: "expired" })).toBeVisible({ timeout: 6_000 + SEEN_MS });
    await expect(page.locator(".holder")).toContainText("worker-0");
    await screens(page, "holder-expired");
    native.close();
  } finally {
    signal("SIGKILL");
  }
});
