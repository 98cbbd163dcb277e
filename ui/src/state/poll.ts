// Asking again and again, never twice at a time, and not while nobody looks.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { get, type Answer } from "../api/call";

/** What is known of something that is asked for again and again. */
export interface Polled<T> {
  /** The last answer; it stays while later ones fail. */
  answer: Answer<T> | null;
  /** Why the last call failed; null when it didn't. */
  error: Error | null;
}

/** Asks until `signal`; `ask` is awaited before the pause, so a slow node isn't asked more. */
export function poll<T>(
  ask: (signal: AbortSignal) => Promise<Answer<T>>,
  everyMs: number,
  tell: (told: { answer: Answer<T> } | { error: Error }) => void,
): { stop: () => void; again: () => void } {
  const end = new AbortController();
  let wake = () => {};
  const onVisible = () => {
    if (!document.hidden) wake();
  };
  document.addEventListener("visibilitychange", onVisible);
  const run = async () => {
    while (!end.signal.aborted) {
      try {
        const answer = await ask(end.signal);
        if (!end.signal.aborted) tell({ answer });
      } catch (error) {
        if (!end.signal.aborted) tell({ error: error instanceof Error ? error : new Error(String(error)) });
      }
      await new Promise<void>((resolve) => {
        const timer = setInterval(() => {
          if (!document.hidden) wake();
        }, everyMs);
        wake = () => {
          clearInterval(timer);
          resolve();
        };
      });
    }
  };
  void run();
  return {
    stop: () => {
      end.abort();
      document.removeEventListener("visibilitychange", onVisible);
      wake();
    },
    again: () => wake(),
  };
}

/** What `GET path` answers, asked again `everyMs` after each answer. Another path begins anew. */
export function usePoll<T>(path: string, everyMs: number): Polled<T> & { again: () => void } {
  const [known, setKnown] = useState<Polled<T> & { path: string }>({ path, answer: null, error: null });
  const again = useRef(() => {});
  useEffect(() => {
    const polling = poll<T>(
      (signal) => get<T>(path, signal),
      everyMs,
      (told) =>
        setKnown((before) => {
          const answer = before.path === path ? before.answer : null;
          return "answer" in told ? { path, answer: told.answer, error: null } : { path, answer, error: told.error };
        }),
    );
    again.current = polling.again;
    return polling.stop;
  }, [path, everyMs]);
  const ask = useCallback(() => again.current(), []);
  const current = known.path === path ? known : { answer: null, error: null };
  return { answer: current.answer, error: current.error, again: ask };
}
