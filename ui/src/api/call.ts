// One call of the public interface, and what can become of it.
import type { Problem } from "./types";

/** An answer, and when it was asked for: what it says of remaining times counts from before that. */
export interface Answer<T> {
  body: T;
  /** On the page's clock, in ms. */
  sentAt: number;
  /** `<log index>.<place>`: which state was seen. */
  position: string;
}

/** The node answered, and refused. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly problem: Problem,
  ) {
    super(problem.detail ?? problem.title);
    this.name = "Refusal";
  }
}

/** No answer came: whether a change took effect isn't known. */
export class Unanswered extends Error {
  override name = "Unanswered";
}

/** The node holds a call for about a second while a leader is elected. */
const WITHIN_MS = 4_000;

export function lockPath(resource: string, rest = ""): string {
  return `locks/${encodeURIComponent(resource)}${rest}`;
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<Answer<T>> {
  const { response, sentAt } = await ask(path, {}, signal);
  return read<T>(response, sentAt);
}

export async function getText(path: string, signal?: AbortSignal): Promise<Answer<string>> {
  const { response, sentAt } = await ask(path, {}, signal);
  if (!response.ok) return read<string>(response, sentAt);
  return { body: await finished(response.text()), sentAt, position: positionOf(response) };
}

/** Declared as JSON, which a page of another site can't send: see docs/http.md. */
export async function post<T>(path: string, body: unknown): Promise<Answer<T>> {
  const headers = { "content-type": "application/json" };
  const { response, sentAt } = await ask(path, { method: "POST", headers, body: JSON.stringify(body) });
  return read<T>(response, sentAt);
}

async function ask(path: string, init: RequestInit, signal?: AbortSignal) {
  const sentAt = performance.now();
  const late = AbortSignal.timeout(WITHIN_MS);
  const ends = signal ? AbortSignal.any([signal, late]) : late;
  const asked = fetch(`./${path}`, { ...init, cache: "no-store", credentials: "same-origin", signal: ends });
  return { response: await finished(asked), sentAt };
}

async function finished<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    const late = error instanceof DOMException && error.name === "TimeoutError";
    throw new Unanswered(late ? `no answer within ${WITHIN_MS / 1000} s` : "the node can't be reached");
  }
}

async function read<T>(response: Response, sentAt: number): Promise<Answer<T>> {
  const text = await finished(response.text());
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw new Unanswered(`the answer (${response.status}) isn't the node's`);
  }
  if (!response.ok) throw new Refusal(response.status, body as Problem);
  return { body: body as T, sentAt, position: positionOf(response) };
}

function positionOf(response: Response): string {
  return response.headers.get("kunci-position") ?? "";
}
