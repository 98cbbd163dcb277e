// Force release: ends the lease that was looked at, and no other.
import { useEffect, useRef, useState } from "preact/hooks";
import { lockPath, post, Refusal } from "../api/call";
import type { ForcedBody } from "../api/types";
import { Foreign } from "./text";

export interface Meant {
  resource: string;
  holder: string;
  token: number;
}

interface ForceProps {
  /** The lease as it was when the dialog was opened. */
  meant: Meant;
  /** The token of the lease that is current now; null when none is. */
  current: number | null;
  onClose: () => void;
  /** Something may have changed. */
  onDone: () => void;
}

export function Force({ meant, current, onClose, onDone }: ForceProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [token, setToken] = useState("");
  const [reason, setReason] = useState("");
  const [state, setState] = useState<"asking" | "sending" | "done">("asking");
  const [failure, setFailure] = useState("");

  useEffect(() => dialog.current?.showModal(), []);

  const over = state !== "done" && current !== meant.token;
  const ready = state === "asking" && !over && token.trim() === String(meant.token) && reason.trim() !== "";
  const send = async () => {
    setState("sending");
    setFailure("");
    try {
      const body = { fencingToken: meant.token, reason: reason.trim() };
      await post<ForcedBody>(lockPath(meant.resource, "/force-release"), body);
      setState("done");
    } catch (error) {
      const code = error instanceof Refusal ? `${error.problem.code}: ` : "";
      const unknown = error instanceof Refusal ? "" : ". Whether it took effect isn't known: look at the lock again";
      setFailure(`${code}${error instanceof Error ? error.message : String(error)}${unknown}`);
      setState("asking");
    }
    onDone();
  };
  const onSubmit = (event: { preventDefault: () => void }) => {
    event.preventDefault();
    if (ready) void send();
  };

  return (
    <dialog ref={dialog} onClose={onClose} aria-labelledby="force-title">
      <form onSubmit={onSubmit}>
        <h2 id="force-title">Force release</h2>
        <dl class="facts">
          <dt>resource</dt>
          <dd>
            <Foreign text={meant.resource} />
          </dd>
          <dt>holder</dt>
          <dd>
            <Foreign text={meant.holder} />
          </dd>
          <dt>token</dt>
          <dd class="mono">{meant.token}</dd>
        </dl>
        {state === "done" ? (
          <p class="note good" role="status">
            The lease with token {meant.token} was ended.
          </p>
        ) : (
          <>
            <p>
              The holder isn't stopped by this: it may go on for a while in the belief that it has the lock. Only what compares
              fencing tokens turns its writes away.
            </p>
            {over && (
              <p class="note bad" role="alert">
                The lease with token {meant.token} isn't current any more
                {current === null ? ": nobody holds the lock." : `: token ${current} is.`}
              </p>
            )}
            <label>
              Type the token <span class="mono">{meant.token}</span> to confirm
              <input
                name="token"
                inputMode="numeric"
                autocomplete="off"
                value={token}
                onInput={(event) => setToken(event.currentTarget.value)}
              />
            </label>
            <label>
              Reason, for the history and the audit log
              <input
                name="reason"
                autocomplete="off"
                maxLength={200}
                value={reason}
                onInput={(event) => setReason(event.currentTarget.value)}
              />
            </label>
          </>
        )}
        {failure && (
          <p class="note bad" role="alert">
            {failure}
          </p>
        )}
        <div class="buttons">
          <button type="button" onClick={() => dialog.current?.close()}>
            {state === "done" ? "Close" : "Cancel"}
          </button>
          {state !== "done" && (
            <button type="submit" class="danger" disabled={!ready}>
              {state === "sending" ? "Ending…" : "End this lease"}
            </button>
          )}
        </div>
      </form>
    </dialog>
  );
}
