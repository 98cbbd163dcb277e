// What happened, in one word that is also told by its colour.
const LEVELS: Record<string, string> = {
  granted: "good",
  expired: "warn",
  abandoned: "warn",
  dropped: "warn",
  timed_out: "warn",
  forced: "bad",
  denied: "bad",
  gap: "bad",
};

export function Kind({ kind }: { kind: string }) {
  return <span class={`kind ${LEVELS[kind] ?? ""}`}>{kind.replaceAll("_", " ")}</span>;
}
