// How the cluster stands, asked of this node once a second, whatever view is open.
import { computed, signal } from "@preact/signals";
import { get } from "../api/call";
import type { ClusterBody, ClusterNode } from "../api/types";
import { now } from "./clock";
import { poll, type Polled } from "./poll";

const EVERY_MS = 1_000;
/** What is older than this is called old. */
export const OLD_MS = 3_000;

export const cluster = signal<Polled<ClusterBody>>({ answer: null, error: null });

/** The last change of leader that this page saw. */
export const leaderChange = signal<{ from: number | null; to: number | null; at: number } | null>(null);
/** Since when this node has known no leader. */
const leaderlessSince = signal<number | null>(null);
const begun = performance.now();

export function start(): void {
  poll<ClusterBody>(
    (ends) => get<ClusterBody>("cluster", ends),
    EVERY_MS,
    (told) => {
      if ("error" in told) {
        cluster.value = { ...cluster.value, error: told.error };
        return;
      }
      const before = cluster.value.answer?.body.leader;
      const leader = told.answer.body.leader;
      if (leader === null) leaderlessSince.value ??= told.answer.sentAt;
      else leaderlessSince.value = null;
      if (before !== undefined && before !== leader) {
        // From the last leader that was known, over the time without one.
        const last = leaderChange.value;
        const from = before ?? (last?.to === null ? last.from : null);
        leaderChange.value = { from, to: leader, at: told.answer.sentAt };
      }
      cluster.value = { answer: told.answer, error: null };
    },
  );
}

export interface Trouble {
  level: "bad" | "warn";
  text: string;
}

/** For how long this node hasn't answered, in ms. */
export const silentMs = computed(() => now.value - (cluster.value.answer?.sentAt ?? begun));

/** What is wrong, worst first. */
export const troubles = computed<Trouble[]>(() => {
  const { answer, error } = cluster.value;
  const found: Trouble[] = [];
  if (silentMs.value > OLD_MS && (error || answer)) {
    const seconds = Math.floor(silentMs.value / 1000);
    const old = answer ? ` What you see is ${seconds} s old.` : "";
    found.push({ level: "bad", text: `This node doesn't answer.${old}` });
    return found;
  }
  if (!answer) return found;
  const body = answer.body;
  if (body.nodeId === null) {
    found.push({ level: "warn", text: "This node belongs to no cluster yet: `kunci cluster init` forms one with it." });
    return found;
  }
  if (body.leader === null) {
    const since = Math.max(0, Math.floor((now.value - (leaderlessSince.value ?? now.value)) / 1000));
    const text = `No leader for ${since} s, as far as this node knows: locks can't be read, granted or renewed here.`;
    found.push({ level: "bad", text });
  }
  for (const text of body.warnings) {
    // Said above, and louder.
    if (text !== "this node knows no leader") found.push({ level: "warn", text });
  }
  return found;
});

/** The other members, for a way out when this one is in trouble. */
export const others = computed<ClusterNode[]>(() => {
  const body = cluster.value.answer?.body;
  return body?.nodes.filter((node) => node.id !== body.nodeId) ?? [];
});

/** The dashboard of a node; null for an address that isn't `host:port`, which comes from the cluster and may be anything. */
export function dashboardOf(node: ClusterNode): string | null {
  if (!/^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):\d{1,5}$/.test(node.http)) return null;
  return `${location.protocol}//${node.http}/${location.hash}`;
}
