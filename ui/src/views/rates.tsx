// Rates and latencies over the last minutes, from /metrics of this node.
import { Plot, type Line } from "../parts/plot";
import { Empty } from "../parts/text";
import { Failed, View } from "../parts/view";
import { seconds, short } from "../parts/words";
import { gauge, history, metricsError, quantile, rate, type Labels } from "../metrics/history";

const HERE = "What this node did for its own clients, and on its own disk.";
const ALL = "Of the whole cluster: every node applies every entry.";

const perSecond = (value: number) => `${short(value)}/s`;

export function RatesView() {
  const taken = history.value;
  const times = taken.map((one) => one.at);
  return (
    <View title="Rates and latencies" curl={[{ path: "metrics" }]} tools={<span class="dim">over 10 s each, while this page is open</span>}>
      <Failed error={metricsError.value} />
      {taken.length < 2 ? <Empty>Reading this node's numbers…</Empty> : <Plots times={times} />}
    </View>
  );
}

function Plots({ times }: { times: number[] }) {
  const events = (kinds: string[]): Line[] =>
    kinds.map((kind) => ({ label: kind.replace("_", " "), points: rate("kunci_events_total", { kind }) }));
  const latency = (name: string, labels: Labels = {}): Line[] => [
    { label: "50 %", points: quantile(name, 0.5, labels) },
    { label: "99 %", points: quantile(name, 0.99, labels) },
  ];
  const outcomes = (name: string, values: string[]): Line[] =>
    values.map((outcome) => ({ label: outcome, points: rate(name, { outcome }) }));
  const request = "kunci_request_duration_seconds";
  const plots = [
    { title: "Grants and ends", about: ALL, form: perSecond, lines: events(["granted", "released", "expired", "forced"]) },
    { title: "Queues", about: ALL, form: perSecond, lines: events(["queued", "timed_out", "dropped"]) },
    {
      title: "Held and waiting",
      about: ALL,
      form: short,
      lines: [
        { label: "held", points: gauge("kunci_leases") },
        { label: "waiting", points: gauge("kunci_waiters") },
      ],
    },
    { title: "Renewals", about: ALL, form: perSecond, lines: outcomes("kunci_renewals_total", ["renewed", "late", "lost"]) },
    { title: "Waiting time until granted", about: ALL, form: seconds, lines: latency("kunci_lease_wait_seconds", { end: "granted" }) },
    {
      title: "Acquires here, granted",
      about: `${HERE} With the wait, for those that queued.`,
      form: seconds,
      lines: latency(request, { op: "acquire", outcome: "granted" }),
    },
    { title: "Renewals here", about: HERE, form: seconds, lines: latency(request, { op: "renew", outcome: "done" }) },
    { title: "Releases here", about: HERE, form: seconds, lines: latency(request, { op: "release", outcome: "done" }) },
    {
      title: "Commit, at the leader",
      about: "From proposing an entry to its being on a quorum's disks. Empty at a node that doesn't lead.",
      form: seconds,
      lines: latency("kunci_commit_duration_seconds"),
    },
    { title: "Fsync here", about: HERE, form: seconds, lines: latency("kunci_fsync_duration_seconds") },
    {
      title: "Refused here",
      about: HERE,
      form: perSecond,
      lines: [
        { label: "all", points: rate("kunci_refusals_total") },
        { label: "limits", points: rate("kunci_limits_hit_total") },
        { label: "fencing rejections", points: rate("kunci_fencing_rejections_total") },
      ],
    },
    {
      title: "Entries to apply here",
      about: "Committed, as far as this node knows, and not applied yet.",
      form: short,
      lines: [{ label: "lag", points: gauge("kunci_apply_lag_entries") }],
    },
  ];
  return (
    <div class="plots">
      {plots.map((plot) => (
        <Plot key={plot.title} {...plot} times={times} />
      ))}
    </div>
  );
}
