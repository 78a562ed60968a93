// Writes a layer's bytecode with CPython in WebAssembly (Pyodide), where no such Python is installed.
// Usage: node compile.mjs <url of pyodide.mjs> <folder> <feature version> <mount point of the layer>

const [pyodideUrl, folder, wanted, mountPoint] = process.argv.slice(2);
const { loadPyodide } = await import(pyodideUrl);
const python = await loadPyodide();
const inside = "/layer";
python.FS.mkdirTree(inside);
python.FS.mount(python.FS.filesystems.NODEFS, { root: folder }, inside);
python.globals.set("inside", inside);
python.globals.set("mount_point", mountPoint);

const found = python.runPython("import sys; '%d.%d' % sys.version_info[:2]");
if (found !== wanted) {
  console.error(`pyodide is Python ${found}, the layer needs Python ${wanted}`);
  process.exit(1);
}
const compiled = python.runPython(`
import compileall, py_compile
compileall.compile_dir(
    inside, quiet=1, maxlevels=100, stripdir=inside, prependdir=mount_point,
    invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
)`);
process.exit(compiled ? 0 : 1);
