// How `ui/dist` is made: few files, with names that never change, since the node's build embeds each by its name.
import { readFileSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";

/** What ends up in the page, and so takes its licence along. */
const SHIPPED = ["preact", "@preact/signals", "@preact/signals-core", "uplot"];

function licenses(): Plugin {
  return {
    name: "licenses",
    generateBundle() {
      const texts = SHIPPED.map((name) => {
        const folder = `node_modules/${name}`;
        const { version } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8")) as { version: string };
        return `${name} ${version}\n\n${readFileSync(`${folder}/LICENSE`, "utf8").trim()}\n`;
      });
      this.emitFile({ type: "asset", fileName: "ui/licenses.txt", source: texts.join(`\n${"-".repeat(80)}\n\n`) });
    },
  };
}

/** Where `npm run dev` finds a node. */
const NODE = "http://127.0.0.1:7400";

export default defineConfig({
  server: { proxy: { "^/(cluster|locks|hot|expiring|events|metrics|policy)([/?]|$)": NODE } },
  // Relative, so that the page also works below a path of somebody's proxy.
  base: "./",
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  plugins: [licenses()],
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rollupOptions: {
      output: {
        entryFileNames: "ui/app.js",
        chunkFileNames: "ui/[name].js",
        assetFileNames: (asset) => (asset.names.some((name) => name.endsWith(".css")) ? "ui/app.css" : "ui/[name][extname]"),
      },
    },
  },
});
