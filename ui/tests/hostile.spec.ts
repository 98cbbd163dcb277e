// What comes from the cluster is text, whatever it looks like.
import { expect, test } from "./world/test";

const MARKUP = `<img src=x onerror="document.title='caught'"><script>document.title='caught'</script>`;

test("names, owners and metadata are never markup", async ({ page, cluster }) => {
  const name = `evil/${MARKUP}`;
  await cluster.acquire(name, MARKUP, { metadata: MARKUP });
  await page.goto(`${cluster.url(0)}/#/locks?prefix=evil/`);
  const row = page.locator(".rows .body .row").first();
  await expect(row).toContainText("<script>");
  await row.getByRole("link").click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(name);
  await expect(page.locator(".holder")).toContainText("onerror");
  await expect(page.locator("img, #app script")).toHaveCount(0);
  expect(await page.title()).toBe(`${name} · kunci`);
});

test("a name that looks like a path, a query or a route leads to its own lock", async ({ page, cluster }) => {
  for (const name of ["../cluster", "a?limit=1&x=%2F#/hot", "100%/ünï/日本", "javascript:alert(1)"]) {
    await cluster.acquire(name, "worker-1");
    await page.goto(`${cluster.url(0)}/#/locks?${new URLSearchParams({ prefix: name })}`);
    await page.locator(".rows .body .row").getByRole("link").click();
    await expect(page.getByRole("heading", { level: 1 })).toHaveText(name);
    await expect(page.locator(".holder")).toContainText("worker-1");
    await page.reload();
    await expect(page.getByRole("heading", { level: 1 })).toHaveText(name);
  }
});

test("characters that hide or turn text around are shown", async ({ page, cluster }) => {
  await cluster.acquire("hidden/\u202eabc", "worker\u200b-1");
  await page.goto(`${cluster.url(0)}/#/locks?prefix=hidden/`);
  const row = page.locator(".rows .body .row").first();
  await expect(row).toContainText("hidden/⟨U+202E⟩abc");
  await expect(row).toContainText("worker⟨U+200B⟩-1");
});

test("the page can't be framed, and asks nobody but its node", async ({ page, cluster }) => {
  const response = await page.goto(`${cluster.url(0)}/`);
  const policy = response?.headers()["content-security-policy"] ?? "";
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toContain("unsafe");
  const hosts = new Set<string>();
  page.on("request", (request) => hosts.add(new URL(request.url()).origin));
  for (const view of ["locks", "hot", "expiring", "events", "rates", "lock/a"]) {
    await page.goto(`${cluster.url(0)}/#/${view}`);
    await page.waitForTimeout(150);
  }
  expect([...hosts]).toEqual([cluster.url(0)]);
});
