// Builds the console: one call of esbuild, an index.html that names its results, and a packed copy of each file.
import { build, context } from "esbuild";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const output = join(import.meta.dirname, "..", "functions", "console", "static");
const options = {
  absWorkingDir: import.meta.dirname,
  entryPoints: ["src/main.tsx"],
  outdir: output,
  bundle: true,
  splitting: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  // Names hold a hash of the content: browsers may keep these files for ever.
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
};

function finish({ metafile }) {
  const outputs = Object.entries(metafile.outputs).map(([path, made]) => [path.split("/").pop(), made]);
  const [script, { cssBundle }] = outputs.find(([, made]) => made.entryPoint === "src/main.tsx");
  const page = readFileSync(join(import.meta.dirname, "src", "index.html"), "utf8")
    .replace("main.js", script)
    .replace("main.css", cssBundle.split("/").pop());
  writeFileSync(join(output, "index.html"), page);
  writeFileSync(join(output, "icon.svg"), readFileSync(join(import.meta.dirname, "src", "icon.svg")));
  writeFileSync(join(output, "licenses.txt"), licenses());
  for (const name of readdirSync(output)) {
    if (!name.endsWith(".gz")) writeFileSync(join(output, `${name}.gz`), gzipSync(readFileSync(join(output, name)), { level: 9 }));
  }
}

/** The licenses of the libraries that are in the bundle. */
function licenses() {
  const { dependencies } = JSON.parse(readFileSync(join(import.meta.dirname, "package.json"), "utf8"));
  const texts = [...Object.keys(dependencies), "@preact/signals-core"].map(
    (name) => `${name}\n\n${readFileSync(join(import.meta.dirname, "node_modules", name, "LICENSE"), "utf8")}`,
  );
  return texts.join("\n");
}

rmSync(output, { recursive: true, force: true });
mkdirSync(output, { recursive: true });
if (process.argv.includes("--watch")) {
  const plugin = { name: "finish", setup: (each) => each.onEnd((result) => result.metafile && finish(result)) };
  await (await context({ ...options, plugins: [plugin] })).watch();
} else {
  finish(await build(options));
}
