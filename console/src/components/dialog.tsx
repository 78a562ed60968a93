/** A modal dialog, which closes on Escape and returns the focus to the element that opened it. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

export function Dialog({
  title,
  close,
  children,
  wide,
}: {
  title: string;
  close: () => void;
  children: ComponentChildren;
  wide?: boolean;
}) {
  const element = useRef<HTMLDialogElement>(null);
  /** Whether the pointer was pressed outside, because a selection of text in a field can also end there. */
  const isOutside = useRef(false);
  // This happens synchronously, so that keys typed immediately go to the dialog.
  useLayoutEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
    return () => returnFocus(before);
  }, []);
  return (
    <dialog
      ref={element}
      class={wide ? "wide" : ""}
      aria-label={title}
      onClose={close}
      onPointerDown={(event) => (isOutside.current = event.target === event.currentTarget)}
      onClick={(event) => isOutside.current && event.target === event.currentTarget && event.currentTarget.close()}
    >
      <div class="dialog-body">
        <header>
          <h2>{title}</h2>
          <button type="button" class="quiet" aria-label="Close" onClick={() => element.current?.close()}>
            ✕
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}

const WATCHED_MS = 5000;

/** Focus an element again, or the page's heading if the action has removed or disabled the element. */
function returnFocus(to: Element | null): void {
  const until = performance.now() + WATCHED_MS;
  const check = () => {
    const isLost = document.activeElement === null || document.activeElement === document.body;
    if (isLost && to instanceof HTMLElement && to.isConnected) to.focus();
    if (document.activeElement === document.body) focusHeading();
    if (performance.now() < until && (document.activeElement === to || document.activeElement?.tagName === "H1")) setTimeout(check, 100);
  };
  setTimeout(check);
}

function focusHeading(): void {
  const heading = document.querySelector<HTMLElement>("main h1");
  if (!heading) return;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
}
