/** Positions of values in a JSON text, to show errors at their fields. */
export interface Place {
  start: number;
  end: number;
  line: number;
}

/** The start and end of a field's value (such as `nodes.report.depends_on` or `tags[0]`), or of its parent's value if
 * the field is missing. */
export function placeOf(text: string, field: string): Place | null {
  const found = positions(text);
  const parts = field.replaceAll(/\[(\d+)\]/g, ".$1").split(".");
  for (let length = parts.length; length > 0; length -= 1) {
    const at = found.get(parts.slice(0, length).join("."));
    if (at) return { start: at[0], end: at[1], line: lineOf(text, at[0]) };
  }
  return null;
}

export const lineOf = (text: string, at: number): number => text.slice(0, at).split("\n").length;

/** The values in a text by path; for invalid JSON, the values before the error. */
function positions(text: string): Map<string, readonly [number, number]> {
  const found = new Map<string, readonly [number, number]>();
  const tokens = /"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s[\]{},:"]+/g;
  let token = tokens.exec(text);
  // At the end of the text, the token stays null, because the expression would start over.
  const next = () => (token = token && tokens.exec(text));

  const value = (path: string, begin: number): number => {
    const start = token?.index ?? text.length;
    const first = token?.[0] ?? "";
    let end = start + first.length;
    next();
    if (first === "{" || first === "[") {
      for (let count = 0; token && token[0] !== "}" && token[0] !== "]"; count += 1) {
        let name = String(count);
        const at = token.index;
        if (first === "{") {
          name = keyOf(token[0]);
          next();
          if (token?.[0] === ":") next();
        }
        end = value(path ? `${path}.${name}` : name, at);
        if (token?.[0] === ",") next();
      }
      if (token) end = token.index + 1;
      next();
    }
    // The position of an object's member begins with its name.
    if (path) found.set(path, [begin, end]);
    return end;
  };
  value("", 0);
  return found;
}

function keyOf(token: string): string {
  try {
    return String(JSON.parse(token));
  } catch {
    return token;
  }
}
