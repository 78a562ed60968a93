/**
 * Calls the deployment's codec endpoint, which decrypts payloads for people, as Temporal calls its remote codecs.
 *
 * The browser sends encrypted payloads directly to the endpoint. With `jwt`, the user's token authorizes the request.
 */
import { signal } from "@preact/signals";
import { isKey, token } from "./client";

/** The address of the codec endpoint; empty if there is no endpoint. */
export const codecEndpoint = signal("");
/** Whether the endpoint gets the token, if it is an identity provider's token; an API key is never sent. */
export const codecGetsToken = signal(false);

/** Encrypted parts of a text, such as an error's message. */
const TEXTS = /\$encrypted:([A-Za-z0-9+/]+={0,2})/g;

/** A text with its encrypted parts hidden. */
export const hiddenText = (text: string): string => text.replace(TEXTS, "[encrypted]");

/** A text with its encrypted parts decrypted. */
export async function decryptedText(text: string): Promise<string> {
  const plain = await Promise.all([...text.matchAll(TEXTS)].map(([, base64]) => decrypted(base64 ?? "")));
  return text.replace(TEXTS, () => String(plain.shift()));
}

/** The value that an encrypted payload contains. */
export async function decrypted(base64: string): Promise<unknown> {
  const headers: Record<string, string> = { "Content-Type": "application/json" };
  if (codecGetsToken.value && token.value && !isKey()) headers["Authorization"] = `Bearer ${token.value}`;
  const body = JSON.stringify({ payloads: [{ metadata: {}, data: base64 }] });
  const response = await fetch(`${codecEndpoint.value.replace(/\/$/, "")}/decode`, { method: "POST", headers, body, credentials: "omit", cache: "no-store" });
  if (!response.ok) throw new Error(`the codec endpoint responded with ${response.status}`);
  const { payloads } = (await response.json()) as { payloads: { data: string }[] };
  const data = Uint8Array.from(atob(payloads[0]?.data ?? ""), (each) => each.charCodeAt(0));
  return JSON.parse(new TextDecoder().decode(data));
}
