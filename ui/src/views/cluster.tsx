// The cluster: its nodes, and its numbers as this node knows them.
import { Empty, Foreign } from "../parts/text";
import { View } from "../parts/view";
import { bytes, count, duration, seconds, short } from "../parts/words";
import type { ClusterBody, ClusterNode } from "../api/types";
import { gauge, history, latest, quantile, rate } from "../metrics/history";
import { now } from "../state/clock";
import { cluster, dashboardOf, leaderChange } from "../state/cluster";

export function ClusterView() {
  const { answer, error } = cluster.value;
  const body = answer?.body;
  return (
    <View
      title="Cluster"
      seen={{ polled: { answer, error }, everyMs: 1_000 }}
      curl={[{ path: "cluster" }, { path: "metrics" }]}
    >
      {body ? (
        <>
          <Nodes body={body} />
          <Numbers body={body} />
        </>
      ) : (
        <Empty>Asking this node…</Empty>
      )}
    </View>
  );
}

function Nodes({ body }: { body: ClusterBody }) {
  const most = Math.max(...body.nodes.map((node) => node.appliedIndex));
  return (
    <table class="nodes">
      <thead>
        <tr>
          <th>node</th>
          <th>role</th>
          <th>state</th>
          <th>dashboard</th>
          <th>zone</th>
          <th class="right">priority</th>
          <th class="right">applied</th>
          <th class="right">lag</th>
          <th>disk</th>
        </tr>
      </thead>
      <tbody>
        {body.nodes.map((node) => (
          <NodeRow key={node.id} node={node} body={body} most={most} />
        ))}
      </tbody>
    </table>
  );
}

function NodeRow({ node, body, most }: { node: ClusterNode; body: ClusterBody; most: number }) {
  const here = node.id === body.nodeId || body.nodeId === null;
  const link = dashboardOf(node);
  // Of a node that nothing was heard of lately nothing is known.
  const unknown = !node.healthy && node.appliedIndex === 0;
  return (
    <tr class={node.healthy ? "" : "down"} data-node={node.id} data-role={node.role} data-healthy={node.healthy}>
      <td>
        {node.id} {here && <span class="tag">this one</span>}
      </td>
      <td>{node.role === "leader" ? <b class="leader">leader</b> : node.role}</td>
      <td>{node.healthy ? <span class="state good">up</span> : <span class="state bad">down</span>}</td>
      <td class="mono">{link && !here ? <a href={link}>{node.http}</a> : <Foreign text={node.http} />}</td>
      <td>{node.zone ? <Foreign text={node.zone} /> : <span class="dim">none</span>}</td>
      <td class="right">{node.priority}</td>
      <td class="right">{unknown ? <span class="dim">not known</span> : count(node.appliedIndex)}</td>
      <td class="right">{unknown ? <span class="dim">not known</span> : count(most - node.appliedIndex)}</td>
      <td>
        <Disk node={node} here={here} />
      </td>
    </tr>
  );
}

/** This node tells its free space; of the others it is known whether they are in trouble. */
function Disk({ node, here }: { node: ClusterNode; here: boolean }) {
  const free = here ? latest("kunci_disk_free_bytes") : null;
  if (node.disk === "stuck") return <span class="state bad">doesn't answer</span>;
  if (node.disk === "low") return <span class="state bad">nearly full{free === null ? "" : `: ${bytes(free)} free`}</span>;
  if (free !== null) return <>{bytes(free)} free</>;
  return node.disk === "ok" ? <>ok</> : <span class="dim">not known</span>;
}

function Numbers({ body }: { body: ClusterBody }) {
  if (history.value.length === 0) return <Empty>Reading this node's numbers…</Empty>;
  const last = (points: (number | null)[]) => points.at(-1) ?? null;
  const perSecond = (value: number | null) => (value === null ? "–" : `${short(value)}/s`);
  const time = (value: number | null) => (value === null ? "–" : seconds(value));
  const whole = (value: number | null) => (value === null ? "–" : count(value));
  const renewals = latest("kunci_renewals_total", { outcome: "lost" });
  return (
    <div class="tiles">
      <Tile label="held locks" value={whole(last(gauge("kunci_leases")))} href="#/locks" />
      <Tile label="waiters" value={whole(last(gauge("kunci_waiters")))} href="#/hot" />
      <Tile label="resources waited for" value={whole(last(gauge("kunci_contended_resources")))} href="#/hot" />
      <Tile label="grants" value={perSecond(last(rate("kunci_events_total", { kind: "granted" })))} href="#/rates" />
      <Tile label="expiries" value={perSecond(last(rate("kunci_events_total", { kind: "expired" })))} href="#/events" />
      <Tile label="renewals" value={perSecond(last(rate("kunci_renewals_total")))} href="#/rates" />
      <Tile label="leases lost at renewal" value={whole(renewals)} href="#/expiring" />
      <Tile label="commit, 99 %" value={time(last(quantile("kunci_commit_duration_seconds", 0.99)))} href="#/rates" />
      <Tile label="fsync here, 99 %" value={time(last(quantile("kunci_fsync_duration_seconds", 0.99)))} href="#/rates" />
      <Tile label="log here" value={size(latest("kunci_log_bytes"))} />
      <Tile label="snapshot here" value={size(latest("kunci_snapshot_bytes"))} />
      <Tile label="cluster time" value={duration(body.clusterTimeMs)} />
      <Tile label={leaderChange.value ? "last election" : "elections"} value={lastElection()} />
      <Tile label="term" value={whole(latest("kunci_term"))} />
      <Tile label="leader changes seen here" value={whole(latest("kunci_leader_changes_total"))} />
    </div>
  );
}

function size(value: number | null): string {
  return value === null ? "–" : bytes(value);
}

function lastElection(): string {
  const seen = leaderChange.value;
  if (seen && seen.to !== null) {
    const from = seen.from === null ? "nobody" : `node ${seen.from}`;
    return `${from} → node ${seen.to}, ${duration(now.value - seen.at)} ago`;
  }
  const [elections, took] = [latest("kunci_elections_total"), latest("kunci_election_duration_seconds_sum")];
  const times = latest("kunci_election_duration_seconds_count");
  if (elections === null) return "–";
  const each = took !== null && times ? `, ${seconds(took / times)} each` : "";
  return `${elections} since this node began${each}`;
}

function Tile({ label, value, href }: { label: string; value: string; href?: string }) {
  const content = (
    <>
      <span class="label">{label}</span>
      <span class="value">{value}</span>
    </>
  );
  return href ? (
    <a class="tile" href={href}>
      {content}
    </a>
  ) : (
    <div class="tile">{content}</div>
  );
}
