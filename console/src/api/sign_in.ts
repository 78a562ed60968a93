/**
 * Sign-in with OpenID Connect: the code flow with PKCE, for a public client.
 *
 * Tokens are kept in memory only. Values that must survive the redirect to the identity provider (state, nonce, PKCE
 * verifier and the open page) are kept in this tab's session storage and removed on return.
 */
import { signal } from "@preact/signals";
import { navigate } from "../router";
import { token, tokenWanted } from "./client";
import { codecEndpoint, codecGetsToken } from "./codec";

interface Provider {
  issuer: string;
  client_id: string;
  audience: string[];
}

interface Endpoints {
  authorization_endpoint: string;
  token_endpoint: string;
}

interface Pending {
  state: string;
  nonce: string;
  verifier: string;
  hash: string;
}

interface Tokens {
  access_token?: string;
  id_token?: string;
  refresh_token?: string;
}

type Claims = { iss?: string; aud?: string | string[]; client_id?: string; nonce?: string };

const PENDING = "duetime.sign-in";
const BYTES = 32;

/** The identity provider of this deployment; null if there is none or it is not yet known. */
export const provider = signal<Provider | null>(null);
/** Why signing in failed, as text. */
export const signInFault = signal("");

const LEAST_LIFE = 10_000;

let refreshToken = "";
let renewedAt = 0;

/** Read the settings of sign-in and of the codec endpoint, and get the token if the identity provider has just redirected back. */
export async function prepareSignIn(): Promise<void> {
  try {
    const config = (await (await fetch("config.json")).json()) as { sign_in: Provider | null; codec_endpoint: string };
    provider.value = config.sign_in;
    codecEndpoint.value = config.codec_endpoint;
    codecGetsToken.value = config.sign_in !== null;
  } catch {
    // Without it, the page prompts for a token.
  }
  const answer = new URLSearchParams(location.search);
  if (!answer.has("state")) return;
  const pending = takePending();
  navigate(`${location.pathname}${pending?.hash ?? location.hash}`, true);
  try {
    if (!provider.value || !pending || answer.get("state") !== pending.state) throw new Error("the response does not belong to a sign-in that was started here");
    const code = answer.get("code");
    if (!code) throw new Error(answer.get("error_description") ?? answer.get("error") ?? "the response has no code");
    await exchange(provider.value, { grant_type: "authorization_code", code, redirect_uri: redirectUri(), code_verifier: pending.verifier }, pending.nonce);
  } catch (error) {
    signInFault.value = `Sign-in failed: ${(error as Error).message}.`;
    tokenWanted.value = true;
  }
}

/** Redirect to the identity provider, which redirects back to the current page. */
export async function beginSignIn(): Promise<void> {
  if (!provider.value) return;
  try {
    const { authorization_endpoint } = await discover(provider.value);
    const pending: Pending = { state: random(), nonce: random(), verifier: random(), hash: location.hash };
    sessionStorage.setItem(PENDING, JSON.stringify(pending));
    const address = new URL(authorization_endpoint);
    const query = {
      response_type: "code",
      client_id: provider.value.client_id,
      redirect_uri: redirectUri(),
      scope: "openid",
      state: pending.state,
      nonce: pending.nonce,
      code_challenge: await challenge(pending.verifier),
      code_challenge_method: "S256",
    };
    for (const [name, value] of Object.entries(query)) address.searchParams.set(name, value);
    location.assign(address.href);
  } catch (error) {
    signInFault.value = `The identity provider cannot be reached: ${(error as Error).message}.`;
  }
}

/** Refresh the token without user interaction, if there is a refresh token; resolves to whether that succeeded. */
export async function renewToken(): Promise<boolean> {
  const asked = refreshToken;
  // A token rejected right after its renewal would always be rejected.
  const isRefused = Date.now() - renewedAt < LEAST_LIFE;
  refreshToken = "";
  if (!asked || !provider.value || isRefused) return false;
  renewedAt = Date.now();
  try {
    await exchange(provider.value, { grant_type: "refresh_token", refresh_token: asked });
    return true;
  } catch {
    return false;
  }
}

async function exchange(from: Provider, grant: Record<string, string>, nonce?: string): Promise<void> {
  const { token_endpoint } = await discover(from);
  const response = await fetch(token_endpoint, { method: "POST", body: new URLSearchParams({ ...grant, client_id: from.client_id }) });
  if (!response.ok) throw new Error(`the identity provider responded with ${response.status}`);
  const tokens = (await response.json()) as Tokens;
  if (nonce !== undefined && claimsOf(tokens.id_token)?.nonce !== nonce) throw new Error("the token is not for this sign-in");
  const usable = [tokens.access_token, tokens.id_token].find((each) => isFor(from, claimsOf(each)));
  if (!usable) throw new Error("no token is for this API; is the token's audience among the deployment's audiences?");
  token.value = usable;
  refreshToken = tokens.refresh_token ?? grant["refresh_token"] ?? "";
  signInFault.value = "";
}

/** Whether the gateway will accept a token, by its issuer and `aud` or `client_id`. */
function isFor(from: Provider, claims: Claims | null): boolean {
  const named = [claims?.aud ?? claims?.client_id ?? []].flat();
  return claims?.iss === from.issuer && named.some((each) => from.audience.includes(each));
}

/** The claims of a token received over TLS from the identity provider; the gateway verifies the signature. */
function claimsOf(jwt: string | undefined): Claims | null {
  try {
    const part = (jwt?.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/");
    return JSON.parse(atob(part)) as Claims;
  } catch {
    return null;
  }
}

async function discover(from: Provider): Promise<Endpoints> {
  const response = await fetch(`${from.issuer.replace(/\/$/, "")}/.well-known/openid-configuration`);
  if (!response.ok) throw new Error(`its configuration responded with ${response.status}`);
  return (await response.json()) as Endpoints;
}

/** The console's address without the fragment, as registered at the identity provider. */
const redirectUri = (): string => `${location.origin}${location.pathname}`;

function takePending(): Pending | null {
  const text = sessionStorage.getItem(PENDING);
  sessionStorage.removeItem(PENDING);
  return text ? (JSON.parse(text) as Pending) : null;
}

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

const random = (): string => base64url(crypto.getRandomValues(new Uint8Array(BYTES)));

const challenge = async (verifier: string): Promise<string> =>
  base64url(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier))));
