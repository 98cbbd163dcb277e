// Force release ends the lease that was looked at, after its token was typed and a reason given, and no other.
import { expect, screens, test } from "./world/test";

test("the lease ends when its token is confirmed and a reason is given", async ({ page, cluster }) => {
  const grant = await cluster.acquire("force/a", "worker-7");
  await page.goto(`${cluster.url(0)}/#/lock/force%2Fa`);
  await page.getByRole("button", { name: "Force release…" }).click();
  const dialog = page.getByRole("dialog");
  const end = dialog.getByRole("button", { name: "End this lease" });
  await expect(dialog).toContainText("worker-7");
  await expect(end).toBeDisabled();
  await dialog.getByLabel("Type the token").fill(String(grant.fencingToken + 1));
  await dialog.getByLabel("Reason").fill("host worker-7 is gone");
  await expect(end).toBeDisabled();
  await dialog.getByLabel("Type the token").fill(String(grant.fencingToken));
  await expect(end).toBeEnabled();
  await screens(page, "force-release");
  await end.click();
  await expect(dialog).toContainText(`The lease with token ${grant.fencingToken} was ended.`);
  expect((await cluster.status("force/a")).held).toBe(false);
  await dialog.getByRole("button", { name: "Close" }).click();
  const newest = page.getByRole("table", { name: "History" }).locator(".body .row").first();
  await expect(newest).toContainText("forced");
  await expect(newest).toContainText("host worker-7 is gone");
});

test("a reason is needed, and nothing is sent without one", async ({ page, cluster }) => {
  const grant = await cluster.acquire("force/b", "worker-7");
  await page.goto(`${cluster.url(0)}/#/lock/force%2Fb`);
  await page.getByRole("button", { name: "Force release…" }).click();
  await page.getByLabel("Type the token").fill(String(grant.fencingToken));
  await page.getByLabel("Reason").fill("   ");
  await page.getByLabel("Reason").press("Enter");
  await expect(page.getByRole("button", { name: "End this lease" })).toBeDisabled();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toHaveCount(0);
  expect((await cluster.status("force/b")).held).toBe(true);
});

test("a successor isn't hit: the dialog says that the lease is over", async ({ page, cluster }) => {
  const grant = await cluster.acquire("force/c", "worker-7");
  await page.goto(`${cluster.url(0)}/#/lock/force%2Fc`);
  await page.getByRole("button", { name: "Force release…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Type the token").fill(String(grant.fencingToken));
  await dialog.getByLabel("Reason").fill("stuck");
  await cluster.release("force/c", grant.leaseId);
  const next = await cluster.acquire("force/c", "worker-8");
  await expect(dialog.getByRole("alert")).toContainText(`token ${next.fencingToken} is`);
  await expect(dialog.getByRole("button", { name: "End this lease" })).toBeDisabled();
  expect((await cluster.status("force/c")).fencingToken).toBe(next.fencingToken);
});

test("a page of another site can't end a lease", async ({ page, cluster, complaints }) => {
  const grant = await cluster.acquire("force/d", "worker-7");
  // Another port is another origin.
  await page.goto(`${cluster.url(1)}/livez`);
  const path = `${cluster.url(0)}/locks/force%2Fd/force-release`;
  const body = JSON.stringify({ fencingToken: grant.fencingToken, reason: "none" });
  const tried = await page.evaluate(
    async ({ path, body }) => {
      const one = async (init: RequestInit) => {
        try {
          const response = await fetch(path, { method: "POST", body, ...init });
          return response.type;
        } catch {
          return "refused";
        }
      };
      return [await one({ headers: { "content-type": "application/json" } }), await one({ mode: "no-cors" })];
    },
    { path, body },
  );
  // The first isn't allowed by its preflight; the second is sent, undeclared, and turned away by the node.
  expect(tried).toEqual(["refused", "opaque"]);
  expect((await cluster.status("force/d")).held).toBe(true);
  complaints.length = 0;
});
