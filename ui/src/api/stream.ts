// The stream of events. By fetch, not EventSource: a refusal can be read, and kinds that this page doesn't know come through.
import type { LockEvent, Problem } from "./types";

export interface Listener {
  /** The stream is open. */
  opened(): void;
  events(batch: LockEvent[]): void;
  /** It ended, and is tried again after a moment. */
  interrupted(why: string): void;
  /** Events between were lost: the stream goes on from now. */
  gap(why: string): void;
}

const AGAIN_AFTER_MS = 1_000;
/** The node gives a sign of life every 10 s. */
const SILENCE_MS = 15_000;

/** Follows the events whose resource begins with `prefix`, from now on, until `signal`. */
export async function follow(prefix: string, listener: Listener, signal: AbortSignal): Promise<void> {
  let after: string | null = null;
  while (!signal.aborted) {
    try {
      after = await once(prefix, after, listener, signal);
      listener.interrupted("the stream ended");
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Compacted) {
        after = null;
        listener.gap(error.message);
      } else {
        listener.interrupted(error instanceof Error ? error.message : "the stream broke");
      }
    }
    await new Promise((wake) => setTimeout(wake, AGAIN_AFTER_MS));
  }
}

class Compacted extends Error {}

async function once(prefix: string, from: string | null, listener: Listener, signal: AbortSignal) {
  const query = new URLSearchParams();
  if (prefix) query.set("prefix", prefix);
  if (from !== null) query.set("after", from);
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), SILENCE_MS);
  let after = from;
  try {
    const ends = AbortSignal.any([signal, silence.signal]);
    const response = await fetch(`./events?${query}`, { cache: "no-store", signal: ends });
    if (!response.ok || !response.body) {
      const problem = (await response.json()) as Problem;
      const text = problem.detail ?? problem.title;
      throw problem.code === "compacted" ? new Compacted(text) : new Error(text);
    }
    listener.opened();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new Parser();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return after;
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE_MS);
      const batch: LockEvent[] = [];
      for (const message of parser.take(value)) {
        after = message.id ?? after;
        if (message.data === "") continue;
        if (message.event === "compacted") throw new Compacted((JSON.parse(message.data) as Problem).detail);
        batch.push(JSON.parse(message.data) as LockEvent);
      }
      if (batch.length > 0) listener.events(batch);
    }
  } finally {
    clearTimeout(timer);
  }
}

interface Message {
  id: string | null;
  event: string;
  data: string;
}

/** Server-Sent Events, as the node writes them: lines end in `\n`. */
class Parser {
  private rest = "";
  private message: Message = { id: null, event: "", data: "" };

  *take(chunk: string): Generator<Message> {
    const lines = (this.rest + chunk).split("\n");
    this.rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line === "") {
        yield this.message;
        this.message = { id: null, event: "", data: "" };
      } else if (line.startsWith("id: ")) this.message.id = line.slice(4);
      else if (line.startsWith("event: ")) this.message.event = line.slice(7);
      else if (line.startsWith("data: ")) this.message.data += line.slice(6);
    }
  }
}
