// Everything is reached without a pointer.
import { expect, test } from "./world/test";

test("views, search, rows and a lock are reached by keys alone", async ({ page, cluster }) => {
  for (const name of ["a", "b", "c"]) await cluster.acquire(`keys/${name}`, "worker-1");
  await page.goto(`${cluster.url(0)}/`);
  await expect(page.locator("table.nodes")).toBeVisible();
  for (const [key, title] of [["3", "Hot resources"], ["4", "Expiring soon"], ["5", "Events"], ["6", "Rates and latencies"], ["1", "Cluster"]]) {
    await page.keyboard.press(key ?? "");
    await expect(page.getByRole("heading", { level: 1 })).toHaveText(title ?? "");
  }
  await page.keyboard.press("/");
  await expect(page.getByRole("searchbox")).toBeFocused();
  await page.keyboard.type("keys/");
  const rows = page.locator(".rows .body .row");
  await expect(rows).toHaveCount(3);
  await page.keyboard.press("Escape");
  await expect(rows.first()).toBeFocused();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("j");
  await expect(rows.nth(2)).toBeFocused();
  await page.keyboard.press("k");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("keys/b");
  await page.goBack();
  await expect(rows).toHaveCount(3);
});

test("keys that come faster than the page is drawn mean what they would mean slowly", async ({ page, cluster }) => {
  for (const name of ["a", "b", "c"]) await cluster.acquire(`fast/${name}`, "worker-1");
  await page.goto(`${cluster.url(0)}/#/locks`);
  await page.keyboard.press("/");
  await expect(page.getByRole("searchbox")).toBeFocused();
  await page.keyboard.type("fast/");
  const rows = page.locator(".rows .body .row");
  await expect(rows).toHaveCount(3);
  await page.keyboard.press("Escape");
  await expect(rows.first()).toBeFocused();
  await page.evaluate(() => {
    for (const key of ["j", "j", "k", "Enter"]) {
      document.activeElement?.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    }
  });
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("fast/b");
});

test("the help names the keys, and Escape closes it", async ({ page, cluster }) => {
  await page.goto(`${cluster.url(0)}/`);
  await expect(page.locator("table.nodes")).toBeVisible();
  await page.keyboard.press("?");
  await expect(page.getByRole("dialog")).toContainText("search locks");
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toHaveCount(0);
});

test("colours can be chosen, and the choice is kept", async ({ page, cluster }) => {
  await page.emulateMedia({ colorScheme: "light" });
  await page.goto(`${cluster.url(0)}/`);
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  expect(await ground()).toBe("rgb(255, 255, 255)");
  await page.getByRole("button", { name: "auto" }).click();
  await page.getByRole("button", { name: "light", exact: true }).click();
  expect(await ground()).toBe("rgb(20, 24, 29)");
  await page.reload();
  expect(await ground()).toBe("rgb(20, 24, 29)");
});
