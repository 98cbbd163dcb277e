// Light, dark, or as the system says.
import { signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

const KEY = "kunci-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

export const theme = signal<Theme>(kept());
/** Counts changes of colours, for what is drawn on a canvas. */
export const colours = signal(0);

export function choose(next: Theme): void {
  theme.value = next;
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // A browser that keeps nothing: the choice holds for this page.
  }
  apply();
}

function kept(): Theme {
  try {
    const found = localStorage.getItem(KEY);
    return found === "light" || found === "dark" ? found : "system";
  } catch {
    return "system";
  }
}

function apply(): void {
  document.documentElement.dataset["theme"] = theme.value;
  colours.value += 1;
}

system.addEventListener("change", apply);
apply();
