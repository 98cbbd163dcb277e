// Small pieces of text that many views have.
import type { ComponentChildren } from "preact";
import { toLock } from "../state/route";
import { now } from "../state/clock";
import { duration, plain } from "./words";

/** A text that somebody else chose: kept apart from what is around it, whatever its direction. */
export function Foreign({ text }: { text: string }) {
  return (
    <bdi class="foreign" title={plain(text)}>
      {plain(text)}
    </bdi>
  );
}

/** In a table's row the keys are on the row, and so not on its link. */
export function LockLink({ resource }: { resource: string }) {
  return (
    <a href={toLock(resource)} title={plain(resource)} tabIndex={-1}>
      <bdi>{plain(resource)}</bdi>
    </a>
  );
}

/** Counts down what was answered, from before it was asked for. */
export function Remaining({ ms, sentAt, of }: { ms: number; sentAt: number; of?: number | undefined }) {
  const left = ms - (now.value - sentAt);
  const part = of ? Math.min(1, Math.max(0, left / of)) : 1;
  const level = left <= 0 ? "bad" : part < 1 / 3 ? "warn" : "";
  return <span class={`time ${level}`}>{left <= 0 ? "due" : duration(left)}</span>;
}

/** Counts up. */
export function Elapsed({ ms, sentAt }: { ms: number; sentAt: number }) {
  return <span class="time">{duration(ms + now.value - sentAt)}</span>;
}

/** How much is left, as a bar; the number stands next to it. */
export function Bar({ part, level = "" }: { part: number; level?: string }) {
  const width = `${Math.round(Math.min(1, Math.max(0, part)) * 100)}%`;
  return (
    <span class={`bar ${level}`} aria-hidden="true">
      <span style={{ width }} />
    </span>
  );
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <div class="empty">{children}</div>;
}
