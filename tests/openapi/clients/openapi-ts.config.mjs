// Node.js finds modules only by their complete names.
export default { input: "openapi.json", output: { path: "generated", module: { extension: ".js" } } };
