// Every view has a URL: `#/locks?prefix=orders/`, `#/lock/orders%2F42`.
import { computed, signal } from "@preact/signals";

export type Route =
  | { view: "cluster" | "hot" | "rates" | "expiring" }
  | { view: "locks" | "events"; prefix: string }
  | { view: "lock"; resource: string }
  | { view: "nowhere"; path: string };

const hash = signal(location.hash);
addEventListener("hashchange", () => {
  hash.value = location.hash;
});

export const route = computed<Route>(() => parse(hash.value));

export function parse(text: string): Route {
  const [path = "", query = ""] = text.replace(/^#/, "").split("?", 2);
  const prefix = new URLSearchParams(query).get("prefix") ?? "";
  const [, view = "", rest] = path.split("/", 3);
  switch (view) {
    case "":
    case "cluster":
      return { view: "cluster" };
    case "hot":
    case "rates":
    case "expiring":
      return { view };
    case "locks":
    case "events":
      return { view, prefix };
    case "lock": {
      const resource = decoded(rest ?? "");
      return resource ? { view, resource } : { view: "nowhere", path: text };
    }
    default:
      return { view: "nowhere", path: text };
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

export function toLock(resource: string): string {
  return `#/lock/${encodeURIComponent(resource)}`;
}

export function toPrefix(view: "locks" | "events", prefix: string): string {
  return prefix ? `#/${view}?${new URLSearchParams({ prefix })}` : `#/${view}`;
}

/** Goes there; without a step back in the browser's history when `replace`. */
export function go(to: string, replace = false): void {
  if (replace) {
    history.replaceState(null, "", to);
    hash.value = location.hash;
  } else location.hash = to;
}
