/** The field for a new task's type. It suggests known types, and shows the handler's payload and the default options.
 * */
import type { ReadonlySignal } from "@preact/signals";
import { useResource } from "../api/resource";
import type { TaskTypeInfo, TypePage } from "../api/types";
import { Field } from "./basics";

/** The relevant parts of a JSON Schema. */
interface Schema {
  type?: string;
  default?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  $ref?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  $defs?: Record<string, Schema>;
}

const SAMPLES: Record<string, unknown> = { string: "", integer: 0, number: 0, boolean: false, array: [] };
const DEEPEST = 5;

/** A payload with the fields of a schema: their defaults, or empty values. */
export function template(schema: Schema, defs = schema.$defs ?? {}, depth = 0): unknown {
  if (schema.default !== undefined) return schema.default;
  if (schema.enum?.length) return schema.enum[0];
  if (schema.$ref) {
    const found = defs[schema.$ref.replace("#/$defs/", "")];
    return found && depth < DEEPEST ? template(found, defs, depth + 1) : null;
  }
  if (schema.anyOf?.[0]) return template(schema.anyOf[0], defs, depth);
  if (!schema.properties) return schema.type === "object" ? {} : (SAMPLES[schema.type ?? ""] ?? null);
  if (depth >= DEEPEST) return null;
  return Object.fromEntries(Object.entries(schema.properties).map(([name, field]) => [name, template(field, defs, depth + 1)]));
}

function typeWords(field: Schema): string {
  return field.type ?? field.$ref?.replace("#/$defs/", "") ?? field.anyOf?.map(typeWords).join(" or ") ?? "any JSON";
}

function payloadWords(schema: Schema): string {
  return Object.entries(schema.properties ?? {})
    .map(([name, field]) => `${name} (${typeWords(field)}${schema.required?.includes(name) ? "" : ", optional"})`)
    .join(", ");
}

/** The known types; null until they are read. */
export function useTypes(): ReadonlySignal<TypePage | null> {
  return useResource<TypePage>("/v1/types").data;
}

export function knownType(types: TypePage | null, name: string): TaskTypeInfo | undefined {
  return types?.types.find((each) => each.type === name);
}

/** The initial payload; null if the type has no schema. */
export function payloadOf(found: TaskTypeInfo | undefined): string | null {
  return found?.payload_schema ? JSON.stringify(template(found.payload_schema as Schema), null, 2) : null;
}

export function TypeField({ types, value, changed }: { types: TypePage | null; value: string; changed: (type: string) => void }) {
  const found = knownType(types, value);
  const defaults = Object.entries(found?.defaults ?? {});
  return (
    <>
      <Field label="Type" hint="The name of a handler, or of a kind of work.">
        <input required list="types" value={value} onInput={(event) => changed(event.currentTarget.value)} autofocus />
      </Field>
      <datalist id="types">
        {types?.types.map((each) => <option key={each.type} value={each.type} />)}
      </datalist>
      {found?.payload_schema && <p class="hint">Handler payload: {payloadWords(found.payload_schema as Schema)}</p>}
      {defaults.length > 0 && (
        <p class="hint">
          Default options of the type, which you can override below:{" "}
          {defaults.map(([name, each], index) => (
            <span key={name}>
              {index > 0 && ", "}
              <code>{`${name}: ${typeof each === "string" ? each : JSON.stringify(each)}`}</code>
            </span>
          ))}
        </p>
      )}
    </>
  );
}
