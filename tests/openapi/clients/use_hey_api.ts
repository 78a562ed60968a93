// Uses the client that @hey-api/openapi-ts generates, as its users would; the first error ends the program.
import assert from "node:assert/strict";
import {
  cancelTasksByFilter,
  createSchedule,
  createTask,
  getCalendar,
  getSchedule,
  getTask,
  listTasks,
  previewSchedule,
  putCalendar,
} from "./generated/index.js";
import { createClient } from "./generated/client/index.js";

const SOON = "2030-01-01T09:00:00.000Z";
const [baseUrl, owner, stranger] = process.argv.slice(2);
const client = createClient({ baseUrl, headers: { "X-Duetime-Owner": owner } });

// Creating with tags, at a time, and with only a type.
const tagged = await createTask({ client, body: { type: "echo", tags: { team: "dba" }, due_at: SOON } });
assert.deepEqual(tagged.data?.tags, { team: "dba" });
assert.equal(tagged.data?.due_at, SOON);
const once = { client, body: { type: "echo" }, headers: { "Idempotency-Key": "one" }, query: { wait_seconds: 20 } };
const plain = await createTask(once);
const again = await createTask(once);
assert.ok(plain.data && again.data?.id === plain.data.id && tagged.data);

// Waiting for the outcome.
const done = await getTask({ client, path: { task_id: plain.data.id } });
assert.equal(done.data?.state, "succeeded");

// Listing by ids, and by tags.
const ids = [tagged.data.id, plain.data.id];
const page = await listTasks({ client, query: { ids } });
assert.deepEqual(new Set(page.data?.tasks.map((task) => task.id)), new Set(ids));
const found = await listTasks({ client, query: { tag: ["team:dba"] } });
assert.deepEqual(found.data?.tasks.map((task) => task.id), [tagged.data.id]);

// A schedule, its preview, a calendar.
const holidays = { name: "holidays" };
const put = await putCalendar({ client, path: holidays, body: { timezone: "Europe/London", weekdays: ["sun"] } });
assert.equal(put.data?.timezone, "Europe/London");
assert.deepEqual((await getCalendar({ client, path: holidays })).data?.weekdays, ["sun"]);
const timing = { cron: "30 1 * * *", timezone: "Europe/London", calendars: ["holidays"] };
const preview = await previewSchedule({ client, body: { ...timing, count: 3 } });
assert.ok((preview.data?.occurrences.length ?? 0) >= 3);
const schedule = await createSchedule({ client, body: { name: "n", task: { type: "echo" }, ...timing } });
assert.equal(schedule.data?.cron, timing.cron);
assert.equal((await getSchedule({ client, path: { name: "n" } })).data?.task.type, "echo");

// A cancel with a filter affects only matching tasks.
const other = await createTask({ client, body: { type: "echo", tags: { team: "web" }, due_at: SOON } });
const filter = { type: "echo", tags: { team: "dba" } };
const counted = await cancelTasksByFilter({ client, body: { filter, dry_run: true } });
assert.ok(counted.data && "matched" in counted.data);
assert.equal(counted.data.matched, 1);
await cancelTasksByFilter({ client, body: { filter } });
const state = async (id: string) => (await getTask({ client, path: { task_id: id } })).data?.state;
assert.ok(other.data);
assert.equal(await state(tagged.data.id), "cancelled");
assert.equal(await state(other.data.id), "scheduled");

// Errors from the API and from the gateway.
const refused = await createTask({ client, body: { type: "not a type" } });
assert.ok(refused.error && "code" in refused.error);
assert.equal(refused.error.code, "fields_invalid");
assert.equal(refused.error.errors[0]?.field, "type");
if (stranger) {
  const unwelcome = createClient({ baseUrl, headers: { "X-Duetime-Owner": stranger } });
  const rejected = await createTask({ client: unwelcome, body: { type: "echo" } });
  assert.ok(rejected.error && "message" in rejected.error);
  assert.equal(rejected.error.message, "Forbidden");
}
