/** Payloads that are too large for a request: the browser sends them to the deployment's bucket, by a signed request. */
import { ApiProblem, ask } from "./client";
import type { Upload } from "./types";

const UPLOADED_BEFORE = 412;

/** A file to upload as the payload of one task. */
export interface Uploadable {
  id: string;
  file: File;
}

export const contentType = (file: File): string => file.type || "application/octet-stream";

/** Upload a file; repeating it is safe. */
export async function upload({ id, file }: Uploadable): Promise<void> {
  const signed = await ask<Upload>("/v1/uploads", { id, size: file.size, content_type: contentType(file) });
  const headers = new Headers(signed.headers);
  // The browser sets it, and lets no page do so.
  headers.delete("Content-Length");
  let response: Response;
  try {
    response = await fetch(signed.url, { method: signed.method, headers, body: file, credentials: "omit", cache: "no-store" });
  } catch {
    throw new ApiProblem(0, "upload_unreachable", "The file was not uploaded", "The bucket did not respond, or its CORS rules do not allow this page.");
  }
  if (!response.ok && response.status !== UPLOADED_BEFORE) {
    throw new ApiProblem(response.status, "upload_refused", "The file was not uploaded", `The bucket answered ${response.status}.`);
  }
}
