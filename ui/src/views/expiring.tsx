// The leases that end next. A healthy holder renews at a third of its TTL: who is here for long has stopped renewing.
import { LockRows } from "../parts/lock-rows";
import { Empty } from "../parts/text";
import { View } from "../parts/view";
import type { ListBody } from "../api/types";
import { usePoll } from "../state/poll";

const EVERY_MS = 1_000;
const PATH = "expiring?limit=200";

export function ExpiringView() {
  const { answer, error } = usePoll<ListBody>(PATH, EVERY_MS);
  const locks = answer?.body.locks ?? [];
  return (
    <View
      title="Expiring soon"
      fills
      seen={{ polled: { answer, error }, everyMs: EVERY_MS }}
      curl={[{ path: PATH }]}
      tools={<span class="dim">the next 200 to end. Marked: less than a third of the lease is left, so its holder is late to renew</span>}
    >
      <LockRows
        label="Expiring soon"
        count={locks.length}
        at={(index) => {
          const lock = locks[index];
          return lock && answer ? { lock, sentAt: answer.sentAt } : undefined;
        }}
        empty={<Empty>{answer ? "No lease is current, so none ends." : error ? "" : "Reading…"}</Empty>}
      />
    </View>
  );
}
