// The line at the top: where one is, which node answers, and whether it does.
import { cluster, OLD_MS, silentMs } from "../state/cluster";
import { route } from "../state/route";
import { choose, theme, type Theme } from "../state/theme";
import { helpIsOpen, VIEWS } from "./keys";
import { duration } from "./words";

const THEMES: Theme[] = ["system", "light", "dark"];

export function TopBar() {
  const view = route.value.view === "lock" ? "locks" : route.value.view;
  const next = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? "system";
  return (
    <header class="top">
      <a class="name" href="#/cluster">
        kunci
      </a>
      <nav aria-label="Views">
        {VIEWS.map(({ key, to, name }) => (
          <a key={to} href={to} title={`key ${key}`} {...(to === `#/${view}` ? { "aria-current": "page" as const } : {})}>
            {name}
          </a>
        ))}
      </nav>
      <span class="gap" />
      <Here />
      <button type="button" class="quiet" onClick={() => choose(next)} title={`colours: ${theme.value}; click for ${next}`}>
        {theme.value === "system" ? "auto" : theme.value}
      </button>
      <button type="button" class="quiet" onClick={() => (helpIsOpen.value = true)} aria-label="Keys">
        ?
      </button>
    </header>
  );
}

/** This node, its cluster, and the pulse of both. */
function Here() {
  const { answer } = cluster.value;
  const body = answer?.body;
  const silent = silentMs.value > OLD_MS;
  const leaderless = body !== undefined && body.leader === null;
  const state = silent ? "no answer" : leaderless ? "no leader" : body ? "live" : "asking…";
  return (
    <span class="here">
      {body?.clusterId && (
        <span class="dim" title={body.clusterId}>
          cluster {body.clusterId.slice(0, 8)}
        </span>
      )}
      {body && <span>{body.nodeId === null ? "no cluster" : `node ${body.nodeId} of ${body.nodes.length}`}</span>}
      <span class={`state ${silent || leaderless ? "bad" : body ? "good" : ""}`} data-state={state}>
        {state}
        {silent && body && ` for ${duration(silentMs.value)}`}
      </span>
    </span>
  );
}
