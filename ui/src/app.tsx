// The page: the top line, what is wrong, and the view that the URL names.
import { useEffect } from "preact/hooks";
import { Banner } from "./parts/banner";
import { TopBar } from "./parts/bar";
import { Help } from "./parts/keys";
import { plain } from "./parts/words";
import { Empty, Foreign } from "./parts/text";
import { View } from "./parts/view";
import { silentMs, OLD_MS, cluster } from "./state/cluster";
import { route, type Route } from "./state/route";
import { ClusterView } from "./views/cluster";
import { EventsView } from "./views/events";
import { ExpiringView } from "./views/expiring";
import { HotView } from "./views/hot";
import { LockView } from "./views/lock";
import { LocksView } from "./views/locks";
import { RatesView } from "./views/rates";

export function App() {
  const at = route.value;
  const silent = silentMs.value > OLD_MS;
  const leaderless = cluster.value.answer?.body.leader === null;
  useEffect(() => {
    document.title = `${silent ? "✕ " : leaderless ? "! " : ""}${title(at)} · kunci`;
  }, [at, silent, leaderless]);
  return (
    <div class={silent ? "page old" : "page"}>
      <TopBar />
      <Banner />
      <Current at={at} />
      <Help />
    </div>
  );
}

function Current({ at }: { at: Route }) {
  switch (at.view) {
    case "cluster":
      return <ClusterView />;
    case "locks":
      return <LocksView prefix={at.prefix} />;
    case "lock":
      return <LockView key={at.resource} resource={at.resource} />;
    case "hot":
      return <HotView />;
    case "expiring":
      return <ExpiringView />;
    case "events":
      return <EventsView key={at.prefix} prefix={at.prefix} />;
    case "rates":
      return <RatesView />;
    case "nowhere":
      return (
        <View title="No such view">
          <Empty>
            There is no view at <Foreign text={at.path} />. <a href="#/cluster">To the cluster</a>
          </Empty>
        </View>
      );
  }
}

function title(at: Route): string {
  if (at.view === "lock") return plain(at.resource);
  return at.view[0]?.toUpperCase() + at.view.slice(1);
}
