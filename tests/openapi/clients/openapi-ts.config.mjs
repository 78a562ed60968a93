// Node finds modules by their whole names.
export default { input: "openapi.json", output: { path: "generated", module: { extension: ".js" } } };
