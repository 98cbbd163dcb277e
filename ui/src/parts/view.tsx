// The head that every view has: its title, which state is shown and how old that is, and the same by curl.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Refusal } from "../api/call";
import { now } from "../state/clock";
import { OLD_MS } from "../state/cluster";
import type { Polled } from "../state/poll";
import { count, duration, quoted } from "./words";

interface Seen {
  polled: Polled<{ revision: number }>;
  /** How often it is asked for, in ms. */
  everyMs: number;
}

/** Which state is shown, and whether it is old. */
export function Freshness({ polled, everyMs }: Seen) {
  const { answer, error } = polled;
  if (!answer) return <span class="fresh">{error ? "nothing read yet" : "reading…"}</span>;
  const age = now.value - answer.sentAt;
  const old = age > OLD_MS + everyMs;
  return (
    <span class={`fresh ${old ? "bad" : ""}`} data-old={old}>
      revision {count(answer.body.revision)}
      {answer.position && ` · position ${answer.position}`} · {old ? `old: ${duration(age)}` : "live"}
    </span>
  );
}

/** The same question for a terminal. */
export function Curl({ path, more = "" }: { path: string; more?: string }) {
  const command = `curl ${more}${quoted(new URL(path, location.href.split("#")[0]).href)}`;
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setCopied(false), 1_500);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = () => {
    // Only where the browser trusts the page: on other addresses the text can be marked by hand.
    navigator.clipboard?.writeText(command).then(
      () => setCopied(true),
      () => setCopied(false),
    );
  };
  return (
    <div class="curl">
      <code>{command}</code>
      <button type="button" class="quiet" onClick={copy} aria-label="Copy the command">
        {copied ? "copied" : "copy"}
      </button>
    </div>
  );
}

/** Why the last call failed, in the node's words. */
export function Failed({ error }: { error: Error | null }) {
  if (!error) return null;
  const code = error instanceof Refusal ? `${error.problem.code}: ` : "";
  return (
    <p class="note bad" role="status">
      {code}
      {error.message}
    </p>
  );
}

interface ViewProps {
  title: ComponentChildren;
  seen?: Seen;
  curl?: { path: string; more?: string }[];
  tools?: ComponentChildren;
  children: ComponentChildren;
  /** The content fills the rest of the window and scrolls by itself. */
  fills?: boolean;
}

export function View({ title, seen, curl = [], tools, children, fills = false }: ViewProps) {
  return (
    <main class={fills ? "view fills" : "view"} id="view" tabIndex={-1}>
      <div class="head">
        <h1>{title}</h1>
        {tools}
        <span class="gap" />
        {seen && <Freshness {...seen} />}
      </div>
      {seen && <Failed error={seen.polled.error} />}
      {children}
      <footer class="curls" aria-label="The same by curl">
        {curl.map((one) => (
          <Curl key={one.path} {...one} />
        ))}
      </footer>
    </main>
  );
}
