// The bodies of the public HTTP interface, as docs/openapi.json has them. Tokens and revisions stay at or below
// 2^53 - 1, which is what a number carries exactly.

export interface Listed {
  resource: string;
  held: boolean;
  holder?: string;
  fencingToken?: number;
  remainingMs?: number;
  heldMs?: number;
  heldSince?: string;
  ttlMs?: number;
  metadata?: string;
  lockDelayMs?: number;
  queueLength: number;
}

export interface StatusBody extends Listed {
  revision: number;
}

export interface ListBody {
  locks: Listed[];
  next?: string;
  revision: number;
}

export interface Waiter {
  owner: string;
  position: number;
  waitedMs: number;
  waitRemainingMs: number;
  attached: boolean;
}

export interface QueueBody {
  resource: string;
  waiters: Waiter[];
  revision: number;
}

export interface LockEvent {
  revision: number;
  clusterTimeMs: number;
  kind: string;
  resource?: string;
  owner?: string;
  fencingToken?: number;
  ttlMs?: number;
  reason?: string;
}

export interface HistoryBody {
  resource: string;
  events: LockEvent[];
  clusterTimeMs: number;
  revision: number;
}

export interface ClusterNode {
  id: number;
  role: string;
  peer: string;
  http: string;
  native: string;
  zone?: string;
  priority: number;
  healthy: boolean;
  disk?: string;
  appliedIndex: number;
}

export interface ClusterBody {
  clusterId: string | null;
  leader: number | null;
  nodes: ClusterNode[];
  nodeId: number | null;
  warnings: string[];
  revision: number;
  clusterTimeMs: number;
}

export interface AuditRecord {
  kind: string;
  wallTime: string;
  action?: string;
  outcome?: string;
  owner?: string;
  caller?: string;
  address?: string;
  fencingToken?: number;
  reason?: string;
  missing?: number;
}

export interface AuditBody {
  records: AuditRecord[];
  next?: string;
  revision: number;
}

export interface ForcedBody {
  released: boolean;
  holder: string;
  fencingToken: number;
  revision: number;
}

export interface Problem {
  code: string;
  title: string;
  detail?: string;
  applied?: string;
}
