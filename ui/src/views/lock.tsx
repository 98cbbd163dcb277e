// One lock: who holds it, who waits, what happened, and the way to end its lease.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { lockPath } from "../api/call";
import type { HistoryBody, LockEvent, QueueBody, StatusBody } from "../api/types";
import { Force, type Meant } from "../parts/force";
import { Kind } from "../parts/kind";
import { Rows } from "../parts/rows";
import { Bar, Elapsed, Empty, Foreign, Remaining } from "../parts/text";
import { View } from "../parts/view";
import { clockTime, count, duration } from "../parts/words";
import { now } from "../state/clock";
import { toPrefix } from "../state/route";
import { usePoll, type Polled } from "../state/poll";
import { More } from "./events";
import { LockAudit } from "./lock-audit";

const EVERY_MS = 1_000;
const HISTORY_MAX = 200;

export function LockView({ resource }: { resource: string }) {
  const paths = {
    status: lockPath(resource),
    queue: lockPath(resource, "/queue"),
    history: lockPath(resource, `/history?limit=${HISTORY_MAX}`),
  };
  const status = usePoll<StatusBody>(paths.status, EVERY_MS);
  const queue = usePoll<QueueBody>(paths.queue, EVERY_MS);
  const past = usePoll<HistoryBody>(paths.history, EVERY_MS);
  const [meant, setMeant] = useState<Meant | null>(null);
  const again = () => [status, queue, past].forEach((one) => one.again());
  const body = status.answer?.body;
  const token = body?.held ? (body.fencingToken ?? null) : null;
  const force = () => {
    if (body && token !== null) setMeant({ resource, holder: body.holder ?? "", token });
  };
  return (
    <View
      title={<Foreign text={resource} />}
      seen={{ polled: status, everyMs: EVERY_MS }}
      curl={[{ path: paths.status }, { path: paths.queue }, { path: paths.history }]}
      tools={
        <>
          {body && <Stands body={body} />}
          <a href={toPrefix("events", resource)}>its events, live</a>
          <button type="button" class="danger" disabled={token === null} onClick={force}>
            Force release…
          </button>
        </>
      }
    >
      {body ? <Holder body={body} sentAt={status.answer?.sentAt ?? 0} /> : <Empty>{status.error ? "" : "Reading…"}</Empty>}
      <h2>Waiters {queue.answer && <span class="dim">{count(queue.answer.body.waiters.length)}</span>}</h2>
      <Waiters polled={queue} />
      <h2>
        What happened <span class="dim">the last {HISTORY_MAX}, as far as events are kept; newest first</span>
      </h2>
      <Past polled={past} />
      <LockAudit resource={resource} />
      {meant && <Force meant={meant} current={token} onClose={() => setMeant(null)} onDone={again} />}
    </View>
  );
}

function Stands({ body }: { body: StatusBody }) {
  if (body.held) return <span class="state held">held</span>;
  return <span class="state">{body.lockDelayMs === undefined ? "free" : "closed"}</span>;
}

function Holder({ body, sentAt }: { body: StatusBody; sentAt: number }) {
  if (!body.held) {
    if (body.lockDelayMs === undefined) return <Empty>Nobody holds it.</Empty>;
    return (
      <Empty>
        Nobody holds it, and a lock-delay keeps it closed for <Remaining ms={body.lockDelayMs} sentAt={sentAt} />.
      </Empty>
    );
  }
  const ttl = body.ttlMs ?? 1;
  const left = (body.remainingMs ?? 0) - (now.value - sentAt);
  return (
    <dl class="facts holder">
      <Fact name="holder">
        <Foreign text={body.holder ?? ""} />
      </Fact>
      <Fact name="token">
        <span class="mono" data-token={body.fencingToken}>
          {body.fencingToken}
        </span>
      </Fact>
      <Fact name="remaining">
        <Remaining ms={body.remainingMs ?? 0} sentAt={sentAt} of={ttl} /> of {duration(ttl)}{" "}
        <Bar part={left / ttl} level={left < ttl / 3 ? "warn" : ""} />
      </Fact>
      <Fact name="last renewed">{duration(ttl - left)} ago</Fact>
      <Fact name="held for">
        <Elapsed ms={body.heldMs ?? 0} sentAt={sentAt} /> <span class="dim">since {body.heldSince}</span>
      </Fact>
      {body.metadata !== undefined && (
        <Fact name="metadata">
          <Foreign text={body.metadata} />
        </Fact>
      )}
    </dl>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Waiters({ polled }: { polled: Polled<QueueBody> }) {
  const { answer, error } = polled;
  const waiters = answer?.body.waiters ?? [];
  return (
    <Rows
      label="Waiters"
      columns="waiters"
      head={["place", "owner", "waiting for", "gives up in", "its call"]}
      count={waiters.length}
      most={10}
      name={(index) => `${waiters[index]?.position}`}
      cells={(index) => {
        const waiter = waiters[index];
        if (!waiter || !answer) return [];
        return [
          waiter.position,
          <Foreign text={waiter.owner} />,
          <Elapsed ms={waiter.waitedMs} sentAt={answer.sentAt} />,
          <Remaining ms={waiter.waitRemainingMs} sentAt={answer.sentAt} />,
          waiter.attached ? "open" : <span class="warn">gone: passed over</span>,
        ];
      }}
      empty={<Empty>{answer ? "Nobody waits." : error ? "Not read." : "Reading…"}</Empty>}
    />
  );
}

function Past({ polled }: { polled: Polled<HistoryBody> }) {
  const { answer, error } = polled;
  const events = answer?.body.events ?? [];
  // Cluster time says how long ago; the browser's clock makes that a time for people.
  const ago = (event: LockEvent) => (answer?.body.clusterTimeMs ?? 0) - event.clusterTimeMs;
  const clock = (event: LockEvent) => clockTime(new Date(Date.now() - ago(event) - (performance.now() - (answer?.sentAt ?? 0))));
  return (
    <Rows
      label="History"
      columns="past"
      head={["revision", "at", "ago", "what", "owner", "token", "more"]}
      count={events.length}
      most={16}
      name={(index) => `${events[events.length - 1 - index]?.revision}`}
      cells={(index) => {
        const event = events[events.length - 1 - index];
        if (!event) return [];
        return [
          event.revision,
          <span title={`cluster time ${duration(event.clusterTimeMs)}`}>{clock(event)}</span>,
          <Elapsed ms={ago(event)} sentAt={answer?.sentAt ?? 0} />,
          <Kind kind={event.kind} />,
          <Foreign text={event.owner ?? ""} />,
          event.fencingToken ?? "",
          <More event={event} />,
        ];
      }}
      empty={<Empty>{answer ? "No event of it is kept any more, or there never was one. `kunci audit` may know." : error ? "Not read." : "Reading…"}</Empty>}
    />
  );
}
