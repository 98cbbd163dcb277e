// What happens, as it happens.
import { useState } from "preact/hooks";
import type { LockEvent } from "../api/types";
import { Kind } from "../parts/kind";
import { Rows } from "../parts/rows";
import { Search } from "../parts/search";
import { Empty, Foreign, LockLink } from "../parts/text";
import { View } from "../parts/view";
import { clockTime, count, duration } from "../parts/words";
import { cluster } from "../state/cluster";
import { useEvents, type Arrived } from "../state/events";

const HEAD = ["revision", "seen at", "what", "resource", "owner", "token", "more"];
const STATES = { opening: "opening the stream…", open: "live", interrupted: "interrupted" };

export function EventsView({ prefix }: { prefix: string }) {
  const [paused, setPaused] = useState(false);
  const { events, seen, state, note } = useEvents(prefix, paused);
  const query = prefix ? `?${new URLSearchParams({ prefix })}` : "";
  const leader = cluster.value.answer?.body.leader;
  return (
    <View
      title="Events"
      fills
      curl={[{ path: `events${query}`, more: "-N " }]}
      tools={
        <>
          <Search view="events" prefix={prefix} />
          <button type="button" aria-pressed={paused} onClick={() => setPaused(!paused)}>
            {paused ? "Go on" : "Pause"}
          </button>
          <span class={state === "interrupted" && !paused ? "bad" : "dim"} role="status" data-stream={paused ? "paused" : state}>
            {paused ? "paused" : STATES[state]} · {count(seen)} since this view was opened
          </span>
        </>
      }
    >
      {!paused && state === "interrupted" && <p class="note warn">{leader === null ? "No leader: the stream goes on with the next one." : note}</p>}
      <Rows
        label="Events"
        columns="events"
        head={HEAD}
        count={events.length}
        name={(index) => String(events[index]?.revision ?? index)}
        cells={(index) => eventCells(events[index])}
        empty={<Empty>{paused ? "Paused before anything happened." : "Nothing has happened since this view was opened. What comes is shown at once."}</Empty>}
      />
    </View>
  );
}

function eventCells(event: Arrived | undefined) {
  if (!event) return [];
  return [
    event.revision,
    <span title={`cluster time ${duration(event.clusterTimeMs)}`}>{clockTime(event.at)}</span>,
    <Kind kind={event.kind} />,
    event.resource === undefined ? <span class="dim">the cluster</span> : <LockLink resource={event.resource} />,
    <Foreign text={event.owner ?? ""} />,
    event.fencingToken ?? "",
    <More event={event} />,
  ];
}

export function More({ event }: { event: LockEvent }) {
  if (event.reason !== undefined) return <Foreign text={event.reason} />;
  return event.ttlMs === undefined ? null : <span class="dim">for {duration(event.ttlMs)}</span>;
}
