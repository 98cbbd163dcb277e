// The resources with the longest queues, and whether those grow.
import { useRef } from "preact/hooks";
import type { ListBody } from "../api/types";
import type { Answer } from "../api/call";
import { Rows } from "../parts/rows";
import { Empty, Foreign, LockLink, Remaining } from "../parts/text";
import { View } from "../parts/view";
import { count } from "../parts/words";
import { usePoll } from "../state/poll";

const EVERY_MS = 2_000;
const PATH = "hot?limit=100";
/** Growth is told over about this long. */
const OVER_MS = 20_000;
const HEAD = ["resource", "waiting", "in 20 s", "holder", "token", "remaining"];

export function HotView() {
  const { answer, error } = usePoll<ListBody>(PATH, EVERY_MS);
  const grown = useGrowth(answer);
  const locks = answer?.body.locks ?? [];
  return (
    <View
      title="Hot resources"
      fills
      seen={{ polled: { answer, error }, everyMs: EVERY_MS }}
      curl={[{ path: PATH }]}
      tools={<span class="dim">longest queue first</span>}
    >
      <Rows
        label="Hot resources"
        columns="hot"
        head={HEAD}
        count={locks.length}
        name={(index) => locks[index]?.resource ?? String(index)}
        cells={(index) => {
          const lock = locks[index];
          if (!lock || !answer) return [];
          const change = grown(lock.resource, lock.queueLength);
          return [
            <LockLink resource={lock.resource} />,
            <b class="waiting">{count(lock.queueLength)}</b>,
            <Change by={change} />,
            lock.held ? <Foreign text={lock.holder ?? ""} /> : <span class="dim">nobody</span>,
            lock.fencingToken ?? "",
            lock.held ? <Remaining ms={lock.remainingMs ?? 0} sentAt={answer.sentAt} of={lock.ttlMs} /> : "",
          ];
        }}
        empty={<Empty>{answer ? "Nobody waits for anything." : error ? "" : "Reading…"}</Empty>}
      />
    </View>
  );
}

function Change({ by }: { by: number | null }) {
  if (by === null || by === 0) return <span class="dim">{by === null ? "" : "±0"}</span>;
  return by > 0 ? <span class="warn">+{count(by)}</span> : <span class="good">−{count(-by)}</span>;
}

/** How much a queue has grown, by what this page saw of it. */
function useGrowth(answer: Answer<ListBody> | null): (resource: string, length: number) => number | null {
  const seen = useRef<{ sentAt: number; lengths: Map<string, number> }[]>([]);
  if (answer && seen.current.at(-1)?.sentAt !== answer.sentAt) {
    const lengths = new Map(answer.body.locks.map((lock) => [lock.resource, lock.queueLength]));
    const kept = seen.current.filter((one) => answer.sentAt - one.sentAt <= OVER_MS);
    seen.current = [...kept, { sentAt: answer.sentAt, lengths }];
  }
  return (resource, length) => {
    const first = seen.current.find((one) => one.lengths.has(resource));
    return first && first !== seen.current.at(-1) ? length - (first.lengths.get(resource) ?? 0) : null;
  };
}
