// The last events of the stream, for as long as the view is open.
import { useEffect, useState } from "preact/hooks";
import { follow } from "../api/stream";
import type { LockEvent } from "../api/types";

/** More than anybody reads; older ones are in each lock's history. */
const KEPT = 2_000;
/** Events are shown in steps, however fast they come. */
const STEP_MS = 250;

export interface Arrived extends LockEvent {
  /** When it came, by this browser's clock. */
  at: Date;
}

export interface Followed {
  /** Newest first. */
  events: Arrived[];
  /** How many came since the view was opened. */
  seen: number;
  state: "opening" | "open" | "interrupted";
  /** Why it was interrupted, or what was lost. */
  note: string;
}

const NOTHING: Followed = { events: [], seen: 0, state: "opening", note: "" };

export function useEvents(prefix: string, paused: boolean): Followed {
  const [shown, setShown] = useState<Followed>(NOTHING);
  useEffect(() => setShown(NOTHING), [prefix]);
  useEffect(() => {
    if (paused) return undefined;
    const end = new AbortController();
    let arrived: Arrived[] = [];
    const timer = setInterval(() => {
      if (arrived.length === 0) return;
      const batch = arrived;
      arrived = [];
      setShown((before) => ({
        ...before,
        events: [...batch.slice(-KEPT).reverse(), ...before.events].slice(0, KEPT),
        seen: before.seen + batch.length,
      }));
    }, STEP_MS);
    const tell = (change: Partial<Followed>) => setShown((before) => ({ ...before, ...change }));
    void follow(
      prefix,
      {
        opened: () => tell({ state: "open" }),
        events: (batch) => {
          const at = new Date();
          for (const event of batch) arrived.push({ ...event, at });
          if (arrived.length > 2 * KEPT) arrived = arrived.slice(-KEPT);
        },
        interrupted: (note) => tell({ state: "interrupted", note }),
        gap: (why) => tell({ state: "interrupted", note: `events were lost in between: ${why}` }),
      },
      end.signal,
    );
    return () => {
      end.abort();
      clearInterval(timer);
      // Until the next one is open.
      tell({ state: "opening" });
    };
  }, [prefix, paused]);
  return shown;
}
