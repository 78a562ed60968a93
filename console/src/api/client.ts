/** Sends requests to the API, which has the same origin as the console (`../v1`). */
import { signal } from "@preact/signals";
import { actsFor } from "../settings";
import { setServerClock } from "../time";
import type { Problem } from "./types";

const ROOT = new URL("../", document.baseURI);

/** An error response with the API's own message, or the lack of a response. */
export class ApiProblem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly title: string,
    detail: string,
    readonly errors: Problem["errors"] = [],
    readonly instance = "",
  ) {
    super(detail);
  }
}

export interface Call {
  method: string;
  path: string;
  body?: unknown;
  headers?: Record<string, string>;
  /** The equivalent command, if there is one. */
  command?: string;
}

/** Show the requests of one action, to be repeated together. */
export function showCalls(calls: readonly Call[]): void {
  if (calls.length) lastCalls.value = calls;
}

/** The change requests of the latest action; pages show how to repeat them. */
export const lastCalls = signal<readonly Call[]>([]);

/** The bearer token, for deployments that require one. It is kept only in memory, until the page is closed. */
export const token = signal("");
/** Whether the API requires a token. */
export const tokenWanted = signal(false);

/** When the API last became unreachable, by this computer's clock; null while it responds. */
export const unreachableSince = signal<number | null>(null);

/** Whether the token is an API key, for which the gateway has separate paths. */
export const isKey = () => token.value.startsWith("dtk_");

export const url = (path: string): string => new URL(`${isKey() ? "key/" : ""}${path.replace(/^\//, "")}`, ROOT).href;

const OWNER = "X-Duetime-Owner";
const known = new Map<string, { etag: string; data: unknown }>();
const MOST_KNOWN = 60;

/** Act for another owner, and discard everything that was read for the previous owner. */
export function actFor(owner: string): void {
  known.clear();
  pending.clear();
  // The shown commands are for the previous owner.
  lastCalls.value = [];
  actsFor.value = owner;
}

/** The version last read from a path, for conditional changes. */
export const etagOf = (path: string): string | undefined => known.get(path)?.etag;

/** Resources that several parts of a page read at the same time. */
const SHARED: ReadonlySet<string> = new Set(["/v1/switches", "/v1/settings", "/v1/summary"]);
const pending = new Map<string, Promise<unknown>>();

/** GET a resource. If it is unchanged, the same object is returned as before. */
export function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  if (!SHARED.has(path)) return read<T>(path, signal);
  const before = pending.get(path);
  if (before) return before as Promise<T>;
  const made: Promise<T> = read<T>(path).finally(() => pending.get(path) === made && pending.delete(path));
  pending.set(path, made);
  return made;
}

/** GET a resource as it is now, even if it is unchanged, because signed addresses in it expire. */
export const getAgain = async <T>(path: string): Promise<T> => (await json(await send(path, {}))) as T;

async function read<T>(path: string, signal?: AbortSignal): Promise<T> {
  const before = known.get(path);
  const response = await send(path, { headers: before ? { "If-None-Match": before.etag } : {}, signal: signal ?? null });
  if (response.status === 304 && before) return before.data as T;
  const data = (await json(response)) as T;
  const etag = response.headers.get("ETag");
  if (etag) {
    known.delete(path);
    known.set(path, { etag, data });
    const [oldest] = known.keys();
    if (known.size > MOST_KNOWN && oldest !== undefined) known.delete(oldest);
  }
  return data;
}

/** The idempotency key of a request, so that a retry creates nothing twice. */
export const newKey = (): string => crypto.getRandomValues(new Uint32Array(4)).join("-");

/** Send a request that changes something. */
export async function change<T>(call: Call): Promise<T> {
  const headers: Record<string, string> = { ...call.headers };
  if (call.body !== undefined) headers["Content-Type"] = "application/json";
  const body = call.body === undefined ? null : JSON.stringify(call.body);
  const response = await send(call.path, { method: call.method, headers, body });
  const data = (await json(response)) as T;
  // A response to a request that began before the change may not include the change.
  pending.clear();
  lastCalls.value = [call];
  return data;
}

/** Send a read-only request with a body, such as a preview or a dry run. */
export async function ask<T>(path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const headers: Record<string, string> = body === undefined ? {} : { "Content-Type": "application/json" };
  const text = body === undefined ? null : JSON.stringify(body);
  return (await json(await send(path, { method: "POST", headers, body: text, signal: signal ?? null }))) as T;
}

async function send(path: string, options: RequestInit): Promise<Response> {
  const headers = { ...(options.headers as Record<string, string>) };
  if (token.value) headers["Authorization"] = `Bearer ${token.value}`;
  if (actsFor.value) headers[OWNER] = actsFor.value;
  let response: Response;
  try {
    // ETags are sent explicitly, because the browser's own cache would hide a 304.
    response = await fetch(url(path), { ...options, headers, cache: "no-store" });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    unreachableSince.value ??= Date.now();
    throw new ApiProblem(0, "unreachable", "The API cannot be reached", "No response. The page is read again automatically; actions are not repeated.");
  }
  unreachableSince.value = null;
  setServerClock(response.headers.get("Date"));
  if (!response.ok && response.status !== 304) throw noticed(await problem(response));
  return response;
}

/** Return a problem after adjusting the state on which later requests depend. */
function noticed(problem: ApiProblem): ApiProblem {
  // The gateway responds with 403, not 401, to a wrong key or an unsigned request.
  if (problem.status === 401 || problem.code === "http_403") tokenWanted.value = true;
  // The caller is no longer in the team that was chosen here.
  if (problem.code === "owner_forbidden") actFor("");
  return problem;
}

async function json(response: Response): Promise<unknown> {
  const text = await response.text();
  return text ? JSON.parse(text) : null;
}

async function problem(response: Response): Promise<ApiProblem> {
  let said: Partial<Problem> & { message?: string } = {};
  try {
    said = (await response.json()) as typeof said;
  } catch {
    // A proxy responds in HTML, so only the status is used.
  }
  return new ApiProblem(
    response.status,
    said.code ?? `http_${response.status}`,
    said.title ?? `Status ${response.status}`,
    said.detail ?? said.message ?? response.statusText,
    said.errors,
    said.instance,
  );
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** A call as a curl command line. */
export function curl(call: Call): string {
  const parts = ["curl", ...(call.method === "GET" ? [] : ["-X", call.method]), quoted(url(call.path))];
  const headers: Record<string, string> = { ...call.headers, ...(call.body === undefined ? {} : { "Content-Type": "application/json" }) };
  if (actsFor.value) headers[OWNER] = actsFor.value;
  for (const [name, value] of Object.entries(headers)) parts.push("-H", quoted(`${name}: ${value}`));
  if (call.body !== undefined) parts.push("-d", quoted(JSON.stringify(call.body)));
  return parts.join(" ");
}

/** An argument of a command, quoted if necessary. */
export const argument = (word: string): string => (/^[\w.:/@=+-]+$/.test(word) ? word : quoted(word));

/** A `duetime` command, with arguments quoted where necessary. */
export const command = (...words: string[]): string =>
  ["duetime", ...words, ...(actsFor.value ? ["--owner", actsFor.value] : [])].map(argument).join(" ");
