// Uses the types of openapi-typescript with openapi-fetch, in the way that users do; the first error ends the program.
// Arguments: the API's URL, an owner without tasks, and optionally an owner that the gateway refuses.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

const SOON = "2030-01-01T09:00:00.000Z";
const [url, owner, stranger] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: url, headers: { "X-Duetime-Owner": owner } });

// Creating with tags, at a time, and with only a type.
const tagged = await client.POST("/v1/tasks", { body: { type: "echo", tags: { team: "dba" }, due_at: SOON } });
assert.deepEqual(tagged.data?.tags, { team: "dba" });
assert.equal(tagged.data?.due_at, SOON);
const key = { query: { wait_seconds: 20 }, header: { "Idempotency-Key": "one" } };
const plain = await client.POST("/v1/tasks", { body: { type: "echo" }, params: key });
const again = await client.POST("/v1/tasks", { body: { type: "echo" }, params: key });
assert.ok(plain.data && again.data?.id === plain.data.id && tagged.data);

// Waiting for the outcome.
const done = await client.GET("/v1/tasks/{task_id}", { params: { path: { task_id: plain.data.id } } });
assert.equal(done.data?.state, "succeeded");

// Listing by ids, and by tags.
const ids = [tagged.data.id, plain.data.id];
const page = await client.GET("/v1/tasks", { params: { query: { ids } } });
assert.deepEqual(new Set(page.data?.tasks.map((task) => task.id)), new Set(ids));
const found = await client.GET("/v1/tasks", { params: { query: { tag: ["team:dba"] } } });
assert.deepEqual(found.data?.tasks.map((task) => task.id), [tagged.data.id]);

// A schedule, its preview, a calendar.
const calendar = { path: { name: "holidays" } };
const put = await client.PUT("/v1/calendars/{name}", {
  params: calendar,
  body: { timezone: "Europe/London", weekdays: ["sun"] },
});
assert.equal(put.data?.timezone, "Europe/London");
assert.deepEqual((await client.GET("/v1/calendars/{name}", { params: calendar })).data?.weekdays, ["sun"]);
const timing = { cron: "30 1 * * *", timezone: "Europe/London", calendars: ["holidays"] };
const preview = await client.POST("/v1/schedules/preview", { body: { ...timing, count: 3 } });
assert.ok((preview.data?.occurrences.length ?? 0) >= 3);
const schedule = await client.POST("/v1/schedules", { body: { name: "n", task: { type: "echo" }, ...timing } });
assert.equal(schedule.data?.cron, timing.cron);
const read = await client.GET("/v1/schedules/{name}", { params: { path: { name: "n" } } });
assert.equal(read.data?.task.type, "echo");

// A cancel with a filter affects only matching tasks.
const other = await client.POST("/v1/tasks", { body: { type: "echo", tags: { team: "web" }, due_at: SOON } });
const filter: components["schemas"]["OpenTaskFilter"] = { type: "echo", tags: { team: "dba" } };
const counted = await client.POST("/v1/tasks/cancel", { body: { filter, dry_run: true } });
assert.equal(counted.data?.matched, 1);
await client.POST("/v1/tasks/cancel", { body: { filter } });
const state = async (id: string) =>
  (await client.GET("/v1/tasks/{task_id}", { params: { path: { task_id: id } } })).data?.state;
assert.ok(other.data);
assert.equal(await state(tagged.data.id), "cancelled");
assert.equal(await state(other.data.id), "scheduled");

// Errors from the API and from the gateway.
const refused = await client.POST("/v1/tasks", { body: { type: "not a type" } });
assert.ok(refused.error && "code" in refused.error);
const code: components["schemas"]["ProblemCode"] = refused.error.code;
assert.equal(code, "fields_invalid");
assert.equal(refused.error.errors[0]?.field, "type");
if (stranger) {
  const unwelcome = createClient<paths>({ baseUrl: url, headers: { "X-Duetime-Owner": stranger } });
  const rejected = await unwelcome.POST("/v1/tasks", { body: { type: "echo" } });
  assert.ok(rejected.error && "message" in rejected.error);
  assert.equal(rejected.error.message, "Forbidden");
}
