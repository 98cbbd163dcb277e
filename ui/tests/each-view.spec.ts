// Each view shows what is there, names the call that shows the same, and has an address of its own.
import { expect, screens, test } from "./world/test";
import { Native } from "./world/native";

test("the cluster: nodes with role, lag and disk, and its numbers", async ({ page, cluster }) => {
  await page.goto(`${cluster.url(0)}/`);
  const rows = page.locator("table.nodes tbody tr");
  await expect(rows).toHaveCount(3);
  await expect(page.locator("tr[data-role=leader]")).toHaveCount(1);
  await expect(page.locator("tr[data-healthy=true]")).toHaveCount(3);
  await expect(rows.first()).toContainText("free");
  await expect(rows.nth(1)).toContainText("ok");
  await expect(page.locator(".tile", { hasText: "held locks" }).locator(".value")).toHaveText(/^[\d\u2009]+$/);
  await expect(page.locator("[data-state=live]")).toBeVisible();
  await expect(page.locator(".curls")).toContainText(`curl ${cluster.url(0)}/cluster`);
  await expect(page.locator(".banner p")).toHaveCount(0);
  // Another member's dashboard is one step away.
  await rows.nth(1).getByRole("link").click();
  await expect(page).toHaveURL(new RegExp(`^${cluster.url(1)}/`));
  await expect(page.locator("tr", { hasText: "this one" })).toHaveAttribute("data-node", String(await cluster.id(1)));
});

test("locks: by prefix, with holder, token, a time that counts down and the number of waiters", async ({ page, cluster }) => {
  const grant = await cluster.acquire("list/a", "worker-1", { leaseDurationMs: 60_000 });
  await cluster.acquire("list/b", "worker-2", { leaseDurationMs: 3_600_000 });
  await cluster.acquire("other/c", "worker-3");
  const native = await Native.open(cluster);
  await native.queue("list/a", 3, (index) => `waiter-${index}`);
  const kinds = ["orders/1042", "orders/1043", "orders/1071", "invoices/2026-11", "jobs/nightly-import", "jobs/rebuild-index", "tenants/acme/config"];
  for (const [index, name] of kinds.entries()) {
    await cluster.acquire(name, `worker-${index + 4}`, { leaseDurationMs: 30_000 + 17_000 * index });
  }
  await page.goto(`${cluster.url(0)}/#/locks?prefix=list/`);
  const rows = page.locator(".rows .body .row");
  await expect(rows).toHaveCount(2);
  const row = rows.filter({ hasText: "list/a" });
  await expect(row).toContainText("worker-1");
  await expect(row).toContainText(String(grant.fencingToken));
  await expect(row.locator(".waiting")).toHaveText("3");
  const left = row.locator(".time").first();
  const first = await left.textContent();
  await expect(left).not.toHaveText(first ?? "");
  await page.getByRole("searchbox").fill("list/b");
  await expect(rows).toHaveCount(1);
  await expect(page).toHaveURL(/#\/locks\?prefix=list%2Fb$/);
  await expect(page.locator(".curls")).toContainText("/locks?prefix=list%2Fb");
  await page.getByRole("searchbox").fill("list/none");
  await expect(page.locator(".empty")).toContainText("No lock whose name begins with list/none");
  await page.getByRole("searchbox").fill("");
  await expect(rows.filter({ hasText: "other/c" })).toBeVisible();
  await screens(page, "locks");
  native.close();
});

test("one lock: its holder, its waiters in order, its history; by a deep link", async ({ page, cluster }) => {
  const grant = await cluster.acquire("one/lock", "worker-1", { metadata: "nightly import, host 7" });
  await cluster.release("one/lock", grant.leaseId);
  await cluster.acquire("one/lock", "worker-2", { metadata: "nightly import, host 8", leaseDurationMs: 45_000 });
  const native = await Native.open(cluster);
  await native.queue("one/lock", 12, (index) => `waiter-${index}`);
  await page.goto(`${cluster.url(0)}/#/lock/one%2Flock`);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("one/lock");
  await expect(page).toHaveTitle("one/lock · kunci");
  await expect(page.locator(".holder")).toContainText("worker-2");
  await expect(page.locator(".holder")).toContainText("nightly import, host 8");
  const waiters = page.getByRole("table", { name: "Waiters" }).locator(".body .row");
  await expect(waiters.first()).toContainText("waiter-0");
  await expect(waiters.nth(1)).toContainText("waiter-1");
  await expect(waiters.first()).toContainText("open");
  const past = page.getByRole("table", { name: "History" }).locator(".body .row");
  await expect(past.last()).toContainText("granted");
  await expect(past.last()).toContainText("worker-1");
  await expect(past.filter({ hasText: "released" })).toHaveCount(1);
  await expect(page.locator(".curls code")).toHaveCount(3);
  await screens(page, "lock");
  // What this node's audit log says of it, with the address that asked.
  await page.getByRole("button", { name: "Read the audit log" }).click();
  const audited = page.getByRole("table", { name: "Audit log" }).locator(".body .row");
  await expect(audited.first()).toContainText("granted");
  await expect(audited.first()).toContainText("127.0.0.1");
  native.close();
  await expect(waiters.first()).toContainText("gone");
});

test("a lock that nobody holds has an answer too", async ({ page, cluster }) => {
  await page.goto(`${cluster.url(0)}/#/lock/never%2Fheld`);
  await expect(page.locator(".empty").first()).toHaveText("Nobody holds it.");
  await expect(page.getByRole("button", { name: "Force release…" })).toBeDisabled();
  await page.goto(`${cluster.url(0)}/#/nothing/here`);
  await expect(page.locator(".empty")).toContainText("There is no view");
});

test("hot resources: the longest queue first, and whether it grows", async ({ page, cluster }) => {
  await cluster.acquire("hot/small", "worker-1");
  await cluster.acquire("hot/large", "worker-2");
  const native = await Native.open(cluster);
  await native.queue("hot/small", 10, (index) => `s-${index}`);
  await native.queue("hot/large", 200, (index) => `l-${index}`);
  await page.goto(`${cluster.url(1)}/#/hot`);
  const rows = page.locator(".rows .body .row");
  await expect(rows.first()).toContainText("hot/large");
  await expect(rows.first().locator(".waiting")).toHaveText("200");
  await native.queue("hot/large", 40, (index) => `m-${index}`);
  await expect(rows.first().locator(".waiting")).toHaveText("240");
  await expect(rows.first()).toContainText("+40");
  await screens(page, "hot");
  native.close();
});

test("expiring soon: the next lease to end comes first, and a late holder is marked", async ({ page, cluster }) => {
  await cluster.acquire("soon/late", "worker-late", { leaseDurationMs: 15_000 });
  await cluster.acquire("soon/fresh", "worker-fresh", { leaseDurationMs: 40_000 });
  await page.goto(`${cluster.url(0)}/#/expiring`);
  const rows = page.locator(".rows .body .row");
  await expect(rows.first()).toContainText("soon/late");
  await expect(rows.first().locator(".bar.warn")).toBeVisible({ timeout: 14_000 });
  await expect(rows.filter({ hasText: "soon/fresh" }).locator(".bar.warn")).toHaveCount(0);
  await screens(page, "expiring");
});

test("events come live, by prefix, and can be paused", async ({ page, cluster }) => {
  await page.goto(`${cluster.url(1)}/#/events?prefix=live/`);
  await expect(page.locator("[data-stream=open]")).toBeVisible();
  const grant = await cluster.acquire("live/a", "worker-1");
  await cluster.acquire("elsewhere/a", "worker-1");
  const rows = page.locator(".rows .body .row");
  await expect(rows).toHaveCount(1);
  await expect(rows.first()).toContainText("granted");
  await cluster.release("live/a", grant.leaseId);
  await expect(rows).toHaveCount(2);
  // The newest is on top.
  await expect(rows.first()).toContainText("released");
  await page.getByRole("button", { name: "Pause" }).click();
  await cluster.acquire("live/b", "worker-1");
  await page.waitForTimeout(600);
  await expect(rows).toHaveCount(2);
  await page.getByRole("button", { name: "Go on" }).click();
  await expect(page.locator("[data-stream=open]")).toBeVisible();
  await cluster.acquire("live/c", "worker-1");
  await expect(rows.first()).toContainText("live/c");
  await expect(page.locator(".curls")).toContainText("curl -N ");
  await screens(page, "events");
});

test("rates and latencies are drawn from this node's metrics", async ({ page, cluster }) => {
  await page.goto(`${cluster.url(0)}/#/rates`);
  await expect(page.locator(".plot")).toHaveCount(12);
  // Something to see: grants and releases for a few seconds.
  const end = Date.now() + 7_000;
  for (let number = 0; Date.now() < end; number += 1) {
    const grant = await cluster.acquire(`rates/${number % 7}`, "worker-1");
    await cluster.release(`rates/${number % 7}`, grant.leaseId);
  }
  const grants = page.locator(".plot", { hasText: "Grants and ends" });
  await expect(grants.locator(".line0 b")).toHaveText(/^[1-9][\d.]*( k)?\/s$/);
  const fsync = page.locator(".plot", { hasText: "Fsync here" });
  await expect(fsync.locator(".line1 b")).toHaveText(/ (µs|ms|s)$/);
  await expect(grants.locator("canvas")).toBeVisible();
  // Drawn in the colours of the legend, not in the canvas's own black.
  const drawn = await grants.locator("canvas").evaluate((canvas: HTMLCanvasElement) => {
    const { data } = canvas.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height) ?? { data: [] };
    const colours = new Set<string>();
    for (let at = 0; at < data.length; at += 4) if (data[at + 3] === 255) colours.add(`${data[at]},${data[at + 1]},${data[at + 2]}`);
    return [...colours];
  });
  // One line may hide another: as many are granted as are released.
  expect(drawn.filter((colour) => ["11,92,173", "180,83,9", "179,22,31", "107,63,160"].includes(colour))).not.toHaveLength(0);
  await screens(page, "rates");
});
