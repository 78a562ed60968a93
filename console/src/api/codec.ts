/**
 * The codec endpoint of the deployment, which decrypts payloads for people: the requests of Temporal's remote codecs.
 *
 * The browser sends encrypted payloads directly to it. With `jwt`, it gets the token of the person, to authorize the request.
 */
import { signal } from "@preact/signals";
import { token } from "./client";

/** Address of the codec endpoint; empty for none. */
export const codecEndpoint = signal("");
/** Whether the endpoint gets the token: one of an identity provider, but never an API key. */
export const codecGetsToken = signal(false);

/** Encrypted texts, such as the message of an error. */
const TEXTS = /\$encrypted:([A-Za-z0-9+/]+={0,2})/g;

/** A text in which encrypted ones are not shown. */
export const hiddenText = (text: string): string => text.replace(TEXTS, "[encrypted]");

/** A text with its encrypted parts decrypted. */
export async function decryptedText(text: string): Promise<string> {
  const plain = await Promise.all([...text.matchAll(TEXTS)].map(([, base64]) => decrypted(base64 ?? "")));
  return text.replace(TEXTS, () => String(plain.shift()));
}

/** The plain value of an encrypted one. */
export async function decrypted(base64: string): Promise<unknown> {
  const headers: Record<string, string> = { "Content-Type": "application/json" };
  if (codecGetsToken.value && token.value) headers["Authorization"] = `Bearer ${token.value}`;
  const body = JSON.stringify({ payloads: [{ metadata: {}, data: base64 }] });
  const response = await fetch(`${codecEndpoint.value.replace(/\/$/, "")}/decode`, { method: "POST", headers, body, credentials: "omit", cache: "no-store" });
  if (!response.ok) throw new Error(`the codec endpoint responded with ${response.status}`);
  const { payloads } = (await response.json()) as { payloads: { data: string }[] };
  const data = Uint8Array.from(atob(payloads[0]?.data ?? ""), (each) => each.charCodeAt(0));
  return JSON.parse(new TextDecoder().decode(data));
}
