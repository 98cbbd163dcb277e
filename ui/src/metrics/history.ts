// This node's numbers over the last minutes, taken every two seconds while somebody looks at the page.
import { signal } from "@preact/signals";
import { getText } from "../api/call";
import { poll } from "../state/poll";
import { parse, series, type Sample } from "./text";

const EVERY_MS = 2_000;
/** Five minutes. */
const KEPT = 150;
/** Rates and quantiles are over so many samples: 10 s. */
const WINDOW = 5;
/** Two samples that are further apart have a hole between them. */
const HOLE_MS = 3 * EVERY_MS;

export interface Taken {
  /** Milliseconds since 1970, by the browser. */
  at: number;
  sample: Sample;
}

/** Oldest first. */
export const history = signal<Taken[]>([]);
export const metricsError = signal<Error | null>(null);

export function start(): void {
  poll<string>(
    (ends) => getText("metrics", ends),
    EVERY_MS,
    (told) => {
      if ("error" in told) {
        metricsError.value = told.error;
        return;
      }
      metricsError.value = null;
      const next = { at: Date.now(), sample: parse(told.answer.body) };
      history.value = [...history.value.slice(1 - KEPT), next];
    },
  );
}

export type Labels = Record<string, string>;

function matches(key: string, name: string, labels: Labels): boolean {
  if (!key.startsWith(name)) return false;
  const found = series(key);
  return found.name === name && Object.entries(labels).every(([label, value]) => found.labels[label] === value);
}

/** The sum of all series of that name with these labels; null when there is none. */
export function total(sample: Sample, name: string, labels: Labels = {}): number | null {
  let sum: number | null = null;
  for (const [key, value] of sample) if (matches(key, name, labels)) sum = (sum ?? 0) + value;
  return sum;
}

/** A gauge as of the last sample. */
export function latest(name: string, labels: Labels = {}): number | null {
  const last = history.value.at(-1);
  return last ? total(last.sample, name, labels) : null;
}

/** The sample that a rate at `index` is counted from. */
function before(taken: Taken[], index: number): Taken | null {
  const end = taken[index];
  let from: Taken | null = null;
  for (let back = 1; back <= WINDOW; back += 1) {
    const [later, earlier] = [taken[index - back + 1], taken[index - back]];
    if (!end || !later || !earlier || later.at - earlier.at > HOLE_MS) break;
    from = earlier;
  }
  return from;
}

/** One value for each sample, null where there is none. */
export type Points = (number | null)[];

export function gauge(name: string, labels: Labels = {}): Points {
  return history.value.map((taken) => total(taken.sample, name, labels));
}

/** A counter's growth each second. */
export function rate(name: string, labels: Labels = {}): Points {
  return history.value.map((taken, index, all) => {
    const from = before(all, index);
    if (!from) return null;
    const [a, b] = [total(from.sample, name, labels), total(taken.sample, name, labels)];
    // A counter that is smaller than before began anew, with its process.
    if (b === null) return null;
    return Math.max(0, b - ((a ?? 0) > b ? 0 : (a ?? 0))) / ((taken.at - from.at) / 1000);
  });
}

/** A quantile of what a histogram counted in the last seconds, by its buckets; null while it counted nothing. */
export function quantile(name: string, q: number, labels: Labels = {}): Points {
  return history.value.map((taken, index, all) => {
    const from = before(all, index);
    return from ? quantileOf(grown(from.sample, taken.sample, name, labels), q) : null;
  });
}

/** How much each bucket grew, by its upper bound, smallest first; each counts those below it too. */
function grown(from: Sample, to: Sample, name: string, labels: Labels): [bound: number, count: number][] {
  const counts = new Map<number, number>();
  for (const [key, value] of to) {
    if (!matches(key, `${name}_bucket`, labels)) continue;
    const bound = Number((series(key).labels["le"] ?? "").replace("Inf", "Infinity"));
    const earlier = from.get(key) ?? 0;
    counts.set(bound, (counts.get(bound) ?? 0) + (earlier > value ? value : value - earlier));
  }
  return [...counts].sort(([a], [b]) => a - b);
}

export function quantileOf(buckets: [bound: number, count: number][], q: number): number | null {
  const all = buckets.at(-1)?.[1] ?? 0;
  if (all === 0) return null;
  const wanted = q * all;
  let [low, below] = [0, 0];
  for (const [bound, count] of buckets) {
    if (count >= wanted) {
      // What is beyond the last bound is at least that.
      if (bound === Infinity || count === below) return low;
      return low + (bound - low) * ((wanted - below) / (count - below));
    }
    [low, below] = [bound, count];
  }
  return low;
}
