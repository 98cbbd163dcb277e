// Every lock that is held, closed or waited for, in order of name.
import { LockRows } from "../parts/lock-rows";
import { Search } from "../parts/search";
import { Empty, Foreign } from "../parts/text";
import { View } from "../parts/view";
import { count } from "../parts/words";
import { latest } from "../metrics/history";
import { EVERY_MS, useLocks } from "../state/locks";

export function LocksView({ prefix }: { prefix: string }) {
  const { pages, answer, error, onVisible } = useLocks(prefix);
  const query = prefix ? `?${new URLSearchParams({ prefix })}` : "";
  const rows = pages.length;
  return (
    <View
      title="Locks"
      fills
      seen={{ polled: { answer, error }, everyMs: EVERY_MS }}
      curl={[{ path: `locks${query}` }]}
      tools={
        <>
          <Search view="locks" prefix={prefix} />
          <span class="dim" data-count={rows}>
            {answer && howMany(rows, pages.isWhole, prefix)}
          </span>
        </>
      }
    >
      <LockRows
        label="Locks"
        count={rows}
        at={(index) => pages.at(index)}
        onVisible={onVisible}
        empty={<Empty>{answer ? <Nothing prefix={prefix} /> : error ? "" : "Reading…"}</Empty>}
      />
    </View>
  );
}

function howMany(rows: number, isWhole: boolean, prefix: string): string {
  if (isWhole) return rows === 1 ? "1 lock" : `${count(rows)} locks`;
  const held = latest("kunci_leases");
  const of = held === null || prefix !== "" || held < rows ? "" : ` of about ${count(held)}`;
  return `the first ${count(rows)}${of}; scroll for more`;
}

function Nothing({ prefix }: { prefix: string }) {
  if (prefix === "") return <>Nobody holds a lock, and nobody waits for one.</>;
  return (
    <>
      No lock whose name begins with <Foreign text={prefix} /> is held or waited for. Case counts.
    </>
  );
}
