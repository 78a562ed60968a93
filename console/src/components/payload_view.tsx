/** Shows a payload, result or message as JSON, as bytes to download, or as a value that the deployment's codec decrypts
 * on request. */
import { useSignal } from "@preact/signals";
import { ApiProblem } from "../api/client";
import { codecEndpoint, decrypted, decryptedText, hiddenText } from "../api/codec";
import { bytesOf, contentType, payloadUrl, type Bytes } from "../api/uploads";
import { JsonView } from "./basics";

const ENCRYPTED = "application/vnd.duetime.encrypted";
/** Larger files do not fit into a request, so they are uploaded first. */
const MOST_BYTES = 1024 * 1024;
const MOST_UPLOADED = 5_000_000;

/** Whether a part of a JSON value is not shown to this caller. */
const isRedacted = (value: unknown): boolean => JSON.stringify(value ?? null).includes('{"$redacted":true}');

const sizeOf = ({ base64, size }: Bytes): number => size ?? Math.floor(((base64 ?? "").replace(/=+$/, "").length * 3) / 4);

/** `task` is the task with this payload; an uploaded payload is read from a URL that the API signs. */
export function PayloadView({ value, label, task = "" }: { value: unknown; label: string; task?: string }) {
  const bytes = bytesOf(value);
  if (!bytes) {
    return (
      <>
        <JsonView value={value} label={label} />
        {isRedacted(value) && <p class="muted">Your role can only read, so values that the deployment redacts are not shown.</p>}
      </>
    );
  }
  if (bytes.content_type === ENCRYPTED) return <Encrypted bytes={bytes} label={label} />;
  return (
    <p aria-label={label}>
      {sizeOf(bytes).toLocaleString("en")} bytes of <code>{bytes.content_type}</code> {bytes.url ? <Uploaded task={task} /> : <Download bytes={bytes} name={label.toLowerCase()} />}
    </p>
  );
}

function Download({ bytes, name }: { bytes: Bytes; name: string }) {
  const save = () => {
    const data = Uint8Array.from(atob(bytes.base64 ?? ""), (each) => each.charCodeAt(0));
    const link = document.createElement("a");
    // The type must never be one that the browser renders.
    link.href = URL.createObjectURL(new Blob([data], { type: "application/octet-stream" }));
    link.download = name;
    link.click();
    URL.revokeObjectURL(link.href);
  };
  return (
    <button type="button" class="quiet small" onClick={save}>
      Download
    </button>
  );
}

function Uploaded({ task }: { task: string }) {
  const fault = useSignal("");
  const save = async () => {
    fault.value = "";
    try {
      location.assign(await payloadUrl(task));
    } catch (error) {
      fault.value = `The payload could not be downloaded: ${error instanceof ApiProblem ? error.title : (error as Error).message}.`;
    }
  };
  return (
    <>
      <button type="button" class="quiet small" onClick={() => void save()}>
        Download
      </button>{" "}
      {fault.value && <span class="fault" role="alert">{fault.value}</span>}
    </>
  );
}

/** Decrypts a value only when the user asks for it; the decrypted value is not kept after the page is closed. */
function Encrypted({ bytes, label }: { bytes: Bytes; label: string }) {
  const plain = useSignal<{ value: unknown } | null>(null);
  const fault = useSignal("");
  const show = async () => {
    fault.value = "";
    try {
      plain.value = { value: await decrypted(bytes.base64 ?? "") };
    } catch (error) {
      fault.value = `It could not be decrypted: ${(error as Error).message}.`;
    }
  };
  if (plain.value) return <PayloadView value={plain.value.value} label={label} />;
  return (
    <>
      <p aria-label={label}>
        Encrypted, {sizeOf(bytes).toLocaleString("en")} bytes{" "}
        {codecEndpoint.value && bytes.base64 !== undefined && (
          <button type="button" class="quiet small" onClick={() => void show()}>
            Decrypt
          </button>
        )}
      </p>
      {fault.value && <p class="fault" role="alert">{fault.value}</p>}
    </>
  );
}

/** A message or traceback, with a button to decrypt its encrypted parts. */
export function Message({ text }: { text: string }) {
  const plain = useSignal<{ of: string; text: string } | null>(null);
  const fault = useSignal("");
  if (hiddenText(text) === text) return <>{text}</>;
  if (plain.value?.of === text) return <>{plain.value.text}</>;
  const show = async () => {
    fault.value = "";
    try {
      plain.value = { of: text, text: await decryptedText(text) };
    } catch (error) {
      fault.value = `It could not be decrypted: ${(error as Error).message}.`;
    }
  };
  return (
    <>
      {hiddenText(text)}{" "}
      {codecEndpoint.value && (
        <button type="button" class="quiet small" onClick={() => void show()}>
          Decrypt
        </button>
      )}
      {fault.value && <span class="fault" role="alert">{fault.value}</span>}
    </>
  );
}

/** A file as a payload: the text for a request, the file to upload first, or the reason why the file cannot be a
 * payload. */
export async function payloadOfFile(file: File): Promise<{ text: string; upload: File | null; fault: string }> {
  if (file.size > MOST_UPLOADED) {
    const sizes = `${file.size.toLocaleString("en")} bytes; a payload has at most ${MOST_UPLOADED.toLocaleString("en")}`;
    return { text: "", upload: null, fault: `The file has ${sizes}.` };
  }
  if (file.size > MOST_BYTES) return { text: "", upload: file, fault: "" };
  let binary = "";
  for (const each of new Uint8Array(await file.arrayBuffer())) binary += String.fromCharCode(each);
  const $binary = { base64: btoa(binary), content_type: contentType(file) };
  return { text: JSON.stringify({ $binary }), upload: null, fault: "" };
}
