// A lock's further past, from the audit log of this node: read when it is asked for, since that is work on a disk.
import { useState } from "preact/hooks";
import { get } from "../api/call";
import type { AuditBody, AuditRecord } from "../api/types";
import { Kind } from "../parts/kind";
import { Rows } from "../parts/rows";
import { Empty, Foreign } from "../parts/text";
import { Curl, Failed } from "../parts/view";

const LIMIT = 100;
const HEAD = ["wall time", "what", "owner", "asked from", "token", "more"];

interface Known {
  records: AuditRecord[];
  /** Where older records begin; undefined when everything was looked at. */
  next: string | undefined;
}

export function LockAudit({ resource }: { resource: string }) {
  const [known, setKnown] = useState<Known | null>(null);
  const [reading, setReading] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const path = `audit?${new URLSearchParams({ resource, limit: String(LIMIT) })}`;
  const read = async () => {
    setReading(true);
    setError(null);
    try {
      const before = known?.next;
      const { body } = await get<AuditBody>(before === undefined ? path : `${path}&${new URLSearchParams({ before })}`);
      setKnown({ records: [...(known?.records ?? []), ...body.records], next: body.next });
    } catch (failure) {
      setError(failure instanceof Error ? failure : new Error(String(failure)));
    }
    setReading(false);
  };
  const records = known?.records ?? [];
  return (
    <section aria-label="Audit log">
      <h2>
        Audit log <span class="dim">of this node, with wall times and addresses; newest first</span>
      </h2>
      <Failed error={error} />
      {known && (
        <Rows
          label="Audit log"
          columns="audit"
          head={HEAD}
          count={records.length}
          most={16}
          name={(index) => String(index)}
          cells={(index) => recordCells(records[index])}
          empty={<Empty>This node has recorded nothing of it{known.next === undefined ? "." : ", as far as was looked."}</Empty>}
        />
      )}
      {(known === null || known.next !== undefined) && (
        <p class="more">
          <button type="button" disabled={reading} onClick={() => void read()}>
            {reading ? "Reading…" : known ? "Read older records" : "Read the audit log"}
          </button>
        </p>
      )}
      <Curl path={path} />
    </section>
  );
}

function recordCells(record: AuditRecord | undefined) {
  if (!record) return [];
  const who = [record.caller, record.address].filter((part) => part !== undefined).join(" at ");
  const missing = record.kind === "gap" ? `${record.missing ?? "some"} records are missing` : "";
  const more = [record.action, record.outcome === "done" ? undefined : record.outcome, record.reason, missing];
  return [
    record.wallTime.replace("T", " ").slice(0, 19),
    <Kind kind={record.kind} />,
    <Foreign text={record.owner ?? ""} />,
    <Foreign text={who} />,
    record.fencingToken ?? "",
    <Foreign text={more.filter((part) => part).join(": ")} />,
  ];
}
