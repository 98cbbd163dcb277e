// What every test has: a cluster, and a page that may not complain or ask anybody else.
import { mkdirSync } from "node:fs";
import { expect, test as base, type Page } from "@playwright/test";
import { Cluster } from "./cluster";

export { expect } from "@playwright/test";

interface Own {
  /** Fails the test when the browser complained; a test that takes a node away says so. */
  complaints: string[];
}

interface Shared {
  /** Three nodes that stay up. Tests use resources of their own. */
  cluster: Cluster;
}

export const test = base.extend<Own, Shared>({
  cluster: [
    async ({}, use) => {
      const cluster = await Cluster.start();
      await use(cluster);
      await cluster.stop();
    },
    { scope: "worker" },
  ],
  complaints: [
    async ({ page }, use) => {
      const complaints: string[] = [];
      page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
      page.on("console", (message) => {
        // 503 is an answer: on a busy machine a leader may be elected anew at any time.
        if (message.type() === "error" && !message.text().includes("status of 503")) complaints.push(`console: ${message.text()}`);
      });
      page.on("request", (request) => {
        // Following a link to another node isn't the page's own asking.
        if (request.isNavigationRequest()) return;
        const [asked, own] = [new URL(request.url()), new URL(page.url())];
        if (own.protocol === "http:" && asked.origin !== own.origin) complaints.push(`it asked ${asked.origin}`);
      });
      await use(complaints);
      expect(complaints).toEqual([]);
    },
    { auto: true },
  ],
});

const SCREENS = "../target/ui-screenshots";
mkdirSync(SCREENS, { recursive: true });

/** Keeps how the page looks, in both colours. */
export async function screens(page: Page, name: string): Promise<void> {
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    // A plot is drawn anew for other colours.
    await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
    await page.screenshot({ path: `${SCREENS}/${name}-${colorScheme}.png` });
  }
  await page.emulateMedia({ colorScheme: "light" });
}
