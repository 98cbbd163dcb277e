// Tests in the Chromium of the system, against clusters that the tests start. Screenshots are kept in target/ui-screenshots.
import { defineConfig } from "@playwright/test";

export default defineConfig({
  testDir: "tests",
  outputDir: "../target/ui-tests",
  // Clusters and browsers share two cores in CI.
  workers: 1,
  timeout: 60_000,
  expect: { timeout: 5_000 },
  forbidOnly: true,
  reporter: [["list"]],
  use: {
    viewport: { width: 1280, height: 800 },
    timezoneId: "UTC",
    locale: "en-GB",
    trace: "off",
    launchOptions: {
      executablePath: process.env["KUNCI_CHROMIUM"] ?? "/usr/bin/chromium",
      // CI is root in a container, where Chromium's own sandbox can't be; the pages are ours.
      args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
    },
  },
});
