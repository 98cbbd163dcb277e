// The page's clock: one beat for everything that counts down.
import { signal } from "@preact/signals";

const BEAT_MS = 250;

/** Milliseconds on the page's own clock, as of the last beat. */
export const now = signal(performance.now());

setInterval(() => {
  if (!document.hidden) now.value = performance.now();
}, BEAT_MS);
