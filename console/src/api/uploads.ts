/** If a payload is too large for an API request, a signed request uploads it to the deployment's bucket. */
import { ApiProblem, ask, getAgain, newKey } from "./client";
import type { Task, Upload } from "./types";

const UPLOADED_BEFORE = 412;

/** Bytes as a response describes them. The `url` of an uploaded payload is signed and expires. */
export interface Bytes {
  content_type: string;
  base64?: string;
  url?: string;
  size?: number;
}

/** The bytes that a JSON value represents; null if it represents other data. */
export function bytesOf(value: unknown): Bytes | null {
  const found = (value as { $binary?: Bytes } | null)?.$binary;
  return found && typeof found.content_type === "string" ? found : null;
}

/** Bytes to upload as the payload of one task. */
export interface Uploadable {
  id: string;
  name: string;
  size: number;
  type: string;
  read: () => Promise<Blob>;
}

export const contentType = (file: File): string => file.type || "application/octet-stream";

/** A file, as the payload of a new task. */
export const uploadOfFile = (file: File): Uploadable => ({
  id: newKey(),
  name: file.name,
  size: file.size,
  type: contentType(file),
  read: () => Promise.resolve(file),
});

/** The uploaded payload of a task, as the payload of a new task; null if the payload was not uploaded. */
export function uploadOfTask(task: Task): Uploadable | null {
  const bytes = bytesOf(task.payload);
  if (bytes?.url === undefined) return null;
  return { id: newKey(), name: "payload", size: bytes.size ?? 0, type: bytes.content_type, read: () => download(task.id) };
}

/** A new address of a task's uploaded payload, because an address that was read earlier may have expired. */
export async function payloadUrl(task: string): Promise<string> {
  const { payload } = await getAgain<Task>(`/v1/tasks/${encodeURIComponent(task)}`);
  return bytesOf(payload)?.url ?? "";
}

async function download(task: string): Promise<Blob> {
  const response = await bucket(await payloadUrl(task), {}, "The payload of the task was not read");
  return response.blob();
}

/** A signed request to the deployment's bucket. */
async function bucket(url: string, request: RequestInit, failure: string, accepted?: number): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(url, { ...request, credentials: "omit", cache: "no-store" });
  } catch {
    throw new ApiProblem(0, "bucket_unreachable", failure, "The bucket did not respond, or its CORS rules do not allow this page.");
  }
  if (!response.ok && response.status !== accepted) {
    throw new ApiProblem(response.status, "bucket_refused", failure, `The bucket responded with ${response.status}.`);
  }
  return response;
}

/** Upload bytes; the upload can be repeated safely. */
export async function upload({ id, size, type, read }: Uploadable): Promise<void> {
  const body = await read();
  const signed = await ask<Upload>("/v1/uploads", { id, size, content_type: type });
  const headers = new Headers(signed.headers);
  // The browser sets this header, and does not let a page set it.
  headers.delete("Content-Length");
  await bucket(signed.url, { method: signed.method, headers, body }, "The file was not uploaded", UPLOADED_BEFORE);
}
