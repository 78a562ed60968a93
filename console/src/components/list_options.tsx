/** The range of dates and the columns of the task list. */
import { useSignal } from "@preact/signals";
import { parseSearch, parseTime } from "../search";
import { columns } from "../settings";
import { isoWithOffset, zoneName } from "../time";
import { COLUMNS } from "./task_table";

const FIELDS = { due: "Due", finished: "Finished", created: "Created" } as const;

/** A bound of a search, as the value of a field for local times. */
function boundOf(text: string, field: string, direction: string): string {
  const term = parseSearch(text).terms.find((each) => each.qualifier === field && each.value.startsWith(direction));
  const at = term && parseTime(term.value)?.at;
  return at ? isoWithOffset(Date.parse(at)).slice(0, 16) : "";
}

function Dates({ text, search }: { text: string; search: (text: string) => void }) {
  const used = Object.keys(FIELDS).find((field) => boundOf(text, field, ">") || boundOf(text, field, "<"));
  const field = useSignal(used ?? "due");
  const from = useSignal(boundOf(text, field.value, ">"));
  const to = useSignal(boundOf(text, field.value, "<"));
  const apply = (event: Event) => {
    event.preventDefault();
    const others = parseSearch(text).terms.filter((term) => term.qualifier !== field.value);
    const bounds = [from.value && `${field.value}:>${from.value}`, to.value && `${field.value}:<${to.value}`];
    search([...others.map((term) => term.text), ...bounds].filter(Boolean).join(" "));
  };
  return (
    <form onSubmit={apply}>
      <select aria-label="Date" value={field.value} onChange={(event) => (field.value = event.currentTarget.value)}>
        {Object.entries(FIELDS).map(([name, title]) => (
          <option key={name} value={name}>
            {title}
          </option>
        ))}
      </select>
      <label>
        from <input type="datetime-local" value={from.value} onInput={(event) => (from.value = event.currentTarget.value)} />
      </label>
      <label>
        to <input type="datetime-local" value={to.value} onInput={(event) => (to.value = event.currentTarget.value)} />
      </label>
      <span class="muted">{zoneName.value}</span>
      <button type="submit">Apply</button>
    </form>
  );
}

export function ListOptions({ text, search }: { text: string; search: (text: string) => void }) {
  const toggle = (name: string) => {
    columns.value = columns.value.includes(name) ? columns.value.filter((each) => each !== name) : [...columns.value, name];
  };
  return (
    <div class="card list-options">
      <Dates key={text} text={text} search={search} />
      <fieldset>
        <legend class="visually-hidden">Columns</legend>
        {Object.entries(COLUMNS).map(([name, title]) => (
          <label key={name} class="check">
            <input type="checkbox" checked={columns.value.includes(name)} onChange={() => toggle(name)} /> {title}
          </label>
        ))}
      </fieldset>
    </div>
  );
}
