// Locks as rows: the same columns wherever locks are listed.
import type { ComponentChildren } from "preact";
import type { Listed } from "../api/types";
import { Rows } from "./rows";
import { Bar, Elapsed, Foreign, LockLink, Remaining } from "./text";
import { count } from "./words";
import { now } from "../state/clock";

interface LockRowsProps {
  label: string;
  count: number;
  at: (index: number) => { lock: Listed; sentAt: number } | undefined;
  onVisible?: (first: number, last: number) => void;
  empty: ComponentChildren;
}

const HEAD = ["resource", "holder", "token", "remaining", "", "held for", "waiting"];

export function LockRows({ label, count: rows, at, onVisible, empty }: LockRowsProps) {
  const cells = (index: number) => {
    const found = at(index);
    if (!found) return [];
    const { lock, sentAt } = found;
    const waiting = lock.queueLength > 0 ? <b class="waiting">{count(lock.queueLength)}</b> : <span class="dim">0</span>;
    if (!lock.held) {
      const why = lock.lockDelayMs === undefined ? "free" : "closed by a lock-delay";
      const left = lock.lockDelayMs === undefined ? null : <Remaining ms={lock.lockDelayMs} sentAt={sentAt} />;
      return [<LockLink resource={lock.resource} />, <span class="dim">{why}</span>, "", left, "", "", waiting];
    }
    return [
      <LockLink resource={lock.resource} />,
      <Foreign text={lock.holder ?? ""} />,
      lock.fencingToken,
      <Remaining ms={lock.remainingMs ?? 0} sentAt={sentAt} of={lock.ttlMs} />,
      <Left lock={lock} sentAt={sentAt} />,
      <Elapsed ms={lock.heldMs ?? 0} sentAt={sentAt} />,
      waiting,
    ];
  };
  return (
    <Rows
      label={label}
      columns="locks"
      head={HEAD}
      count={rows}
      cells={cells}
      name={(index) => at(index)?.lock.resource ?? String(index)}
      {...(onVisible ? { onVisible } : {})}
      empty={empty}
    />
  );
}

function Left({ lock, sentAt }: { lock: Listed; sentAt: number }) {
  const left = (lock.remainingMs ?? 0) - (now.value - sentAt);
  const part = left / (lock.ttlMs ?? 1);
  return <Bar part={part} level={part < 1 / 3 ? "warn" : ""} />;
}
