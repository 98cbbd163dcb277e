// Locks in order of name, read page by page as far as somebody scrolls, and read again where somebody looks.
import type { Answer } from "../api/call";
import type { ListBody, Listed } from "../api/types";

/** What the node gives at most in one answer. */
export const PAGE = 1_000;

/** The locks whose names are after `after` and up to `until`. */
export interface Page {
  after: string | null;
  /** Null: to the end, as far as there are locks. */
  until: string | null;
  locks: Listed[];
  sentAt: number;
}

export interface Found {
  lock: Listed;
  sentAt: number;
}

/** Which locks are known. Every change makes a new value. */
export class Pages {
  constructor(readonly all: Page[] = []) {}

  get length(): number {
    return this.all.reduce((sum, page) => sum + page.locks.length, 0);
  }

  /** Whether the last lock is among them. */
  get isWhole(): boolean {
    const last = this.all.at(-1);
    return last !== undefined && last.until === null;
  }

  /** From where to read on. */
  get next(): string | null {
    return this.all.at(-1)?.until ?? null;
  }

  at(index: number): Found | undefined {
    let left = index;
    for (const page of this.all) {
      const lock = page.locks[left];
      if (lock) return { lock, sentAt: page.sentAt };
      left -= page.locks.length;
    }
    return undefined;
  }

  /** The pages that hold rows from `first` to before `last`. */
  holding(first: number, last: number): Page[] {
    let begin = 0;
    return this.all.filter((page) => {
      const from = begin;
      begin += page.locks.length;
      return from < last && begin > first;
    });
  }

  /** With what was read after `after`: a page that is new, or one read again. */
  with(after: string | null, answer: Answer<ListBody>): Pages {
    const { locks, next = null } = answer.body;
    const at = this.all.findIndex((page) => page.after === after);
    const old = this.all[at];
    const sentAt = answer.sentAt;
    if (!old) {
      const follows = this.all.length === 0 ? after === null : this.next === after && !this.isWhole;
      return follows ? new Pages([...this.all, { after, until: next, locks, sentAt }]) : this;
    }
    const isLast = at === this.all.length - 1;
    const rest = this.all.slice(at + 1);
    const before = this.all.slice(0, at);
    if (isLast || next === null) {
      // Nothing is known behind it, or there is nothing.
      return new Pages([...before, { after, until: next, locks, sentAt }]);
    }
    const end = old.until ?? "";
    if (isAfter(end, next)) {
      // More locks than before fit between: what is behind `next` is a page of its own, and read when it is looked at.
      const behind = old.locks.filter((lock) => isAfter(lock.resource, next));
      const split = { after: next, until: old.until, locks: behind, sentAt: old.sentAt };
      return new Pages([...before, { after, until: next, locks, sentAt }, split, ...rest]);
    }
    const own = locks.filter((lock) => !isAfter(lock.resource, end));
    const page = { after, until: old.until, locks: own, sentAt };
    if (own.length > 0 || before.length === 0) return new Pages([...before, page, ...rest]);
    // An empty page goes: the one before it reaches as far.
    const last = before[before.length - 1] as Page;
    return new Pages([...before.slice(0, -1), { ...last, until: old.until }, ...rest]);
  }
}

const encoder = new TextEncoder();

/** Names are in order of their bytes, which for some characters isn't the order of JavaScript's texts. */
export function isAfter(a: string, b: string): boolean {
  const [left, right] = [encoder.encode(a), encoder.encode(b)];
  for (let index = 0; index < Math.min(left.length, right.length); index += 1) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return left.length > right.length;
}
