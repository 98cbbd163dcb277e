// The list of locks behind the view: reads on where somebody scrolls, and again what is visible.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { get, type Answer } from "../api/call";
import type { ListBody } from "../api/types";
import { PAGE, Pages } from "./pages";
import type { Polled } from "./poll";

export const EVERY_MS = 2_000;
/** So many are read without being scrolled to, so that the table's end is the list's end; beyond, only where somebody looks. */
const EAGER = 10_000;

interface State extends Polled<ListBody> {
  prefix: string;
  pages: Pages;
}

export interface Locks extends State {
  /** Which rows are visible: they are kept fresh, and those after them are read. */
  onVisible: (first: number, last: number) => void;
}

export function useLocks(prefix: string): Locks {
  const empty = { prefix, pages: new Pages(), answer: null, error: null };
  const [state, setState] = useState<State>(empty);
  const visible = useRef({ first: 0, last: 0 });
  const latest = useRef(state);
  latest.current = state.prefix === prefix ? state : empty;
  const wake = useRef(() => {});

  useEffect(() => {
    const ends = new AbortController();
    const current = () => latest.current.pages;
    const read = async (after: string | null) => {
      const query = new URLSearchParams({ limit: String(PAGE) });
      if (prefix) query.set("prefix", prefix);
      if (after !== null) query.set("after", after);
      const answer: Answer<ListBody> = await get<ListBody>(`locks?${query}`, ends.signal);
      if (ends.signal.aborted) return;
      latest.current = { prefix, pages: current().with(after, answer), answer, error: null };
      setState(latest.current);
    };
    const ahead = () => Math.max(EAGER, visible.current.last + PAGE / 2);
    const round = async () => {
      const { first, last } = visible.current;
      const seen = current().holding(first, last);
      if (current().all.length === 0) await read(null);
      for (const page of seen) await read(page.after);
      const begun = performance.now();
      while (!ends.signal.aborted && !current().isWhole && current().length < ahead()) {
        await read(current().next);
        // What is visible is kept fresh meanwhile.
        if (performance.now() - begun > EVERY_MS) return;
      }
    };
    const run = async () => {
      while (!ends.signal.aborted) {
        try {
          if (!document.hidden) await round();
        } catch (error) {
          if (ends.signal.aborted) return;
          latest.current = { ...latest.current, error: error instanceof Error ? error : new Error(String(error)) };
          setState(latest.current);
        }
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, EVERY_MS);
          wake.current = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
    };
    void run();
    return () => {
      ends.abort();
      wake.current();
    };
  }, [prefix]);

  const onVisible = useCallback((first: number, last: number) => {
    visible.current = { first, last };
    const { pages } = latest.current;
    if (pages.all.length > 0 && !pages.isWhole && pages.length < last + PAGE / 2) wake.current();
  }, []);
  return { ...latest.current, onVisible };
}
