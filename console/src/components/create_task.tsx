/** The button that opens the form to create a task or to run a task again; the form is loaded on first use. */
import { useSignal } from "@preact/signals";
import type { Task } from "../api/types";
import { useLater } from "./basics";

export function CreateTask({ created, from }: { created?: () => void; from?: Task }) {
  const isOpen = useSignal(false);
  const Form = useLater(isOpen.value, async () => (await import("./create_task_form")).CreateTaskForm);
  return (
    <>
      <button type="button" class={from ? "" : "primary"} onClick={() => (isOpen.value = true)}>
        {from ? "Run again…" : "New task"}
      </button>
      {Form && <Form close={() => (isOpen.value = false)} created={created} from={from} />}
    </>
  );
}
