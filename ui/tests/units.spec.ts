// What needs no browser: pages of locks, quantiles, and how numbers read.
import { expect, test } from "@playwright/test";
import type { Answer } from "../src/api/call";
import type { ListBody } from "../src/api/types";
import { parse, series } from "../src/metrics/text";
import { quantileOf } from "../src/metrics/history";
import { duration, plain, quoted, seconds, short } from "../src/parts/words";
import { isAfter, Pages } from "../src/state/pages";

function answer(names: string[], next?: string): Answer<ListBody> {
  const locks = names.map((resource) => ({ resource, held: true, queueLength: 0 }));
  return { body: { locks, revision: 1, ...(next === undefined ? {} : { next }) }, sentAt: 0, position: "" };
}

const names = (pages: Pages) => pages.all.flatMap((page) => page.locks.map((lock) => lock.resource));

test("pages follow each other until the last one", () => {
  const first = new Pages().with(null, answer(["a", "b"], "b"));
  expect([first.isWhole, first.next]).toEqual([false, "b"]);
  const both = first.with("b", answer(["c"]));
  expect([both.isWhole, both.length, both.at(2)?.lock.resource]).toEqual([true, 3, "c"]);
  expect(both.holding(2, 3).map((page) => page.after)).toEqual(["b"]);
});

test("a page that is read again takes what appeared in it, and nothing of the next", () => {
  const pages = new Pages().with(null, answer(["a", "c"], "c")).with("c", answer(["d", "e"]));
  expect(names(pages.with(null, answer(["a", "b"], "b")))).toEqual(["a", "b", "c", "d", "e"]);
  expect(names(pages.with(null, answer(["a", "d"], "d")))).toEqual(["a", "d", "e"]);
  // An emptied page goes, and what was behind it is reached from the one before.
  const emptied = pages.with("c", answer([]));
  expect([names(emptied), emptied.isWhole]).toEqual([["a", "c"], true]);
  // The end came nearer: nothing is behind it.
  expect(names(pages.with(null, answer(["a"])))).toEqual(["a"]);
});

test("names are in the order of their bytes", () => {
  expect(isAfter("a/b", "a")).toBe(true);
  expect(isAfter("a", "a")).toBe(false);
  // JavaScript's own order has these two the other way round.
  expect(isAfter("\u{1f512}", "\uff21")).toBe(true);
});

test("a quantile lies within its bucket", () => {
  const buckets: [number, number][] = [
    [0.001, 50],
    [0.01, 99],
    [Infinity, 100],
  ];
  expect(quantileOf(buckets, 0.5)).toBeCloseTo(0.001);
  expect(quantileOf(buckets, 0.99)).toBeCloseTo(0.01);
  expect(quantileOf(buckets, 1)).toBe(0.01);
  expect(quantileOf([[Infinity, 0]], 0.5)).toBeNull();
});

test("metrics are read with their labels", () => {
  const sample = parse('# HELP a b\na 3\nb{x="1",le="+Inf"} 2.5\n\n');
  expect([...sample.entries()]).toEqual([["a", 3], ['b{x="1",le="+Inf"}', 2.5]]);
  expect(series('b{x="1",le="+Inf"}')).toEqual({ name: "b", labels: { x: "1", le: "+Inf" } });
});

test("numbers read as a person would say them", () => {
  expect([0, 9_940, 59_999, 63_000, 3_900_000, 100_000_000].map(duration)).toEqual(["0.0 s", "9.9 s", "59 s", "1 m 03 s", "1 h 05 m", "1 d 3 h"]);
  expect([0, 0.5, 12, 3_100, 31_000, 1_200_000].map(short)).toEqual(["0", "0.5", "12", "3100", "31 k", "1.2 M"]);
  expect([0, 0.00025, 0.0042, 1.5].map(seconds)).toEqual(["0", "250 µs", "4.2 ms", "1.5 s"]);
});

test("what is hidden in a name is shown, and a shell gets it as one word", () => {
  expect(plain("a\u202eb\u2066c")).toBe("a⟨U+202E⟩b⟨U+2066⟩c");
  expect(plain("日本 👩‍🚀")).toBe("日本 👩‍🚀");
  expect([quoted("http://a/b?c=d"), quoted("it's")]).toEqual([`'http://a/b?c=d'`, `'it'\\''s'`]);
});
