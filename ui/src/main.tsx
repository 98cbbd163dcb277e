// The page's beginning: what goes on all the time, and then the page itself.
import { render } from "preact";
import { App } from "./app";
import { listen } from "./parts/keys";
import { start as startCluster } from "./state/cluster";
import { start as startMetrics } from "./metrics/history";
import "./style/colours.css";
import "./style/page.css";
import "./style/rows.css";
import "./style/parts.css";

startCluster();
startMetrics();
listen();
const root = document.getElementById("app");
if (root) render(<App />, root);
