// Ten thousand locks: the page has the rows that are visible, and scrolls without a stutter.
import { expect, test } from "./world/test";
import { Native } from "./world/native";

const LOCKS = 10_000;
/** Rows that may exist at a time, in a window of 800 pixels. */
const ROWS_MAX = 100;
/** Milliseconds. CI draws without a graphics card, on two cores that three nodes share: a third of the screen's rate, and few late. */
const FRAME_MS_MAX = 50;
const LATE_FRAME_MS_MAX = 200;

test("ten thousand locks scroll smoothly, and few rows exist", async ({ page, cluster }) => {
  const native = await Native.open(cluster);
  const names = Array.from({ length: LOCKS }, (_, index) => `many/${String(index).padStart(5, "0")}`);
  await native.hold(names, (index) => `worker-${index % 100}`);
  await page.goto(`${cluster.url(0)}/#/locks?prefix=many/`);
  const rows = page.locator(".rows .body .row");
  await expect(rows.first()).toContainText("many/00000");
  expect(await rows.count()).toBeLessThan(ROWS_MAX);

  await expect(page.locator("[data-count]")).toHaveAttribute("data-count", String(LOCKS), { timeout: 20_000 });
  const box = page.locator(".rows");
  await rows.first().focus();
  await page.keyboard.press("End");
  await expect(rows.filter({ hasText: "many/09999" })).toBeFocused();
  await expect(page.locator("[data-count]")).toHaveText("10\u2009000 locks");

  const frames = await box.evaluate(async (element) => {
    const times: number[] = [];
    let [last, most] = [performance.now(), 0];
    const step = element.scrollHeight / 240;
    for (let frame = 0; frame < 240; frame += 1) {
      element.scrollTop = element.scrollHeight - frame * step;
      const now = await new Promise<number>((drawn) => requestAnimationFrame(drawn));
      times.push(now - last);
      last = now;
      most = Math.max(most, element.querySelectorAll(".row").length);
    }
    times.sort((a, b) => a - b);
    const at = (part: number) => times[Math.floor(part * (times.length - 1))] ?? 0;
    return { median: at(0.5), late: at(0.95), worst: at(1), most };
  });
  console.log(`frames while scrolling ${LOCKS} locks, in ms:`, frames);
  expect(frames.most).toBeLessThan(ROWS_MAX);
  expect(frames.median).toBeLessThan(FRAME_MS_MAX);
  expect(frames.late).toBeLessThan(LATE_FRAME_MS_MAX);
  native.close();
});

test("a lock that appears in the middle of the list is shown there", async ({ page, cluster }) => {
  await cluster.acquire("middle/a", "worker-1");
  await cluster.acquire("middle/c", "worker-1");
  await page.goto(`${cluster.url(0)}/#/locks?prefix=middle/`);
  const rows = page.locator(".rows .body .row");
  await expect(rows).toHaveCount(2);
  const grant = await cluster.acquire("middle/b", "worker-2");
  await expect(rows).toHaveText([/middle\/a/, /middle\/b/, /middle\/c/]);
  await cluster.release("middle/b", grant.leaseId);
  await expect(rows).toHaveCount(2);
});
