/** The nodes as a table with a hundred rows per page, which gives keyboard and screen reader users the graph's content.
 * */
import type { ReadonlySignal } from "@preact/signals";
import { StateChip, Time, Took } from "../components/basics";
import { setQuery } from "../router";
import { zoneLabel } from "../time";
import { whyOf } from "./explanation";
import { statusOf, type Nodes } from "./live_topology";

const PAGE = 100;

interface NodeTableProps {
  nodes: ReadonlySignal<Nodes>;
  critical: readonly string[];
  found: ReadonlySet<string> | null;
  query: URLSearchParams;
}

export function NodeTable({ nodes, critical, found, query }: NodeTableProps) {
  const onPath = new Set(critical);
  const keys = [...nodes.value.keys()].filter((key) => !found || found.has(key));
  const pages = Math.max(1, Math.ceil(keys.length / PAGE));
  const page = Math.min(pages, Math.max(1, Math.floor(Number(query.get("page")) || 1)));
  return (
    <>
      <table class="node-table cards" aria-label="Nodes">
        <thead>
          <tr>
            <th scope="col">State</th>
            <th scope="col">Node</th>
            <th scope="col">Started ({zoneLabel()})</th>
            <th scope="col" class="number">Took</th>
            <th scope="col">Depends on</th>
            <th scope="col">Why</th>
          </tr>
        </thead>
        <tbody>
          {keys.slice((page - 1) * PAGE, page * PAGE).map((key) => {
            const node = nodes.value.get(key);
            if (!node) return null;
            const took = node.started_at && node.finished_at ? Date.parse(node.finished_at) - Date.parse(node.started_at) : null;
            return (
              <tr key={key} data-row={key}>
                <td>
                  <StateChip state={statusOf(node)} />
                </td>
                <td>
                  <button type="button" class="link" data-open onClick={() => setQuery({ node: key })}>
                    {key}
                  </button>{" "}
                  <span class="muted">{node.type}</span> {onPath.has(key) && <span class="tag">critical path</span>}
                </td>
                <td>
                  <Time at={node.started_at} short />
                </td>
                <td class="number">
                  <Took ms={took} />
                </td>
                <td>
                  {node.depends_on.length > 0 && <span class="narrow-only muted">after </span>}
                  {node.depends_on.length > 3 ? `${node.depends_on.length} nodes` : node.depends_on.join(", ")}
                  {node.trigger_rule !== "all_success" && <code class="tag">{node.trigger_rule}</code>}
                  {node.when && <code class="tag" title={node.when}>when</code>}
                </td>
                <td class="muted">{whyOf(node, nodes.value)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {pages > 1 && (
        <nav class="pager" aria-label="Pages of the nodes">
          <span class="muted">
            Page {page} of {pages}
          </span>
          <button type="button" disabled={page === 1} onClick={() => setQuery({ page: page === 2 ? "" : String(page - 1) })}>
            Previous page
          </button>
          <button type="button" disabled={page === pages} onClick={() => setQuery({ page: String(page + 1) })}>
            Next page
          </button>
        </nav>
      )}
    </>
  );
}
