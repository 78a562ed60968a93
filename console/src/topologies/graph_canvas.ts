/** A canvas that shows a graph, controlled by pointer, wheel and keys; drawing happens in the next frame. */
import { NODE_HEIGHT, NODE_WIDTH, type Layout } from "./layout";
import { Painter, type Palette, type Scene } from "./painter";
import { centered, fitted, moved, written, zoomed, type Size, type Viewport } from "./viewport";

export interface GraphEvents {
  select: (node: number | null) => void;
  /** Called when the user has moved the picture. */
  moved: (view: Viewport) => void;
  hovered: (node: number | null) => void;
}

const REST_MS = 180;
const CLICK_PIXELS = 4;
const ROOM_FOR_TOOLS = 78;
/** Graphs with more nodes take all available space. */
const LARGE = 60;
/** Nodes that have not run or will not run are dimmed. */
const IDLE = new Set(["blocked", "scheduled", "skipped", "stopped"]);
/** The scale at which nodes are followed. */
const FOLLOWED_SCALE = 0.7;

export class GraphCanvas {
  #view: Viewport = { x: 0, y: 0, scale: 1 };
  #screen: Size = { width: 0, height: 0 };
  #scene: Scene | null = null;
  #painter: Painter | null = null;
  #palette: Palette | null = null;
  #isWhole = true;
  #reported = "";
  #frame = 0;
  #rest = 0;
  #pointers = new Map<number, { x: number; y: number }>();
  #travelled = 0;
  #hovered: number | null = null;
  readonly #stop = new AbortController();
  readonly #sizes = new ResizeObserver(() => this.#resized());

  constructor(
    readonly element: HTMLCanvasElement,
    readonly layout: Layout,
    readonly events: GraphEvents,
  ) {
    const listen = <K extends keyof HTMLElementEventMap>(kind: K, act: (event: HTMLElementEventMap[K]) => void) =>
      element.addEventListener(kind, act, { signal: this.#stop.signal, passive: false });
    listen("pointerdown", (event) => this.#pressed(event));
    listen("pointermove", (event) => this.#dragged(event));
    listen("pointerup", (event) => this.#released(event));
    listen("pointercancel", (event) => this.#pointers.delete(event.pointerId));
    listen("pointerleave", () => this.#hover(null));
    listen("wheel", (event) => this.#wheeled(event));
    this.#sizes.observe(element);
    this.#resized();
  }

  close(): void {
    this.#stop.abort();
    this.#sizes.disconnect();
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#rest);
  }

  draw(scene: Scene): void {
    this.#scene = scene;
    this.#painter = null;
    this.#later();
  }

  recolor(): void {
    this.#palette = null;
    this.#painter = null;
    this.#later();
  }

  /** Show a part of the picture, or the complete picture if null; no effect if the user just moved the picture there. */
  show(view: Viewport | null): void {
    if (view && written(view) === this.#reported) return;
    this.#isWhole = view === null;
    this.#view = view ?? fitted(this.layout, this.#screen);
    this.#later();
  }

  zoom(factor: number): void {
    this.#move(zoomed(this.#view, factor, { x: this.#screen.width / 2, y: this.#screen.height / 2 }));
  }

  /** Zoom by a key; returns whether the key zooms. */
  keyed(key: string): boolean {
    if (key === "+" || key === "=") this.zoom(1.4);
    else if (key === "-") this.zoom(1 / 1.4);
    else return false;
    return true;
  }

  /** Scroll a node into view if necessary. */
  reveal(node: number): void {
    this.follow([node]);
  }

  /** Scroll nodes into view if none is visible. */
  follow(nodes: readonly number[]): void {
    const [first] = nodes;
    if (first === undefined || nodes.some((node) => this.#isSeen(node))) return;
    const [x, y] = [(this.layout.x[first] ?? 0) + NODE_WIDTH / 2, (this.layout.y[first] ?? 0) + NODE_HEIGHT / 2];
    this.#isWhole = false;
    this.#view = centered(this.#view, this.#screen, x, y, Math.max(this.#view.scale, FOLLOWED_SCALE));
    this.#later();
  }

  #isSeen(node: number): boolean {
    const { x, y, scale } = this.#view;
    const [left, top] = [((this.layout.x[node] ?? 0) - x) * scale, ((this.layout.y[node] ?? 0) - y) * scale];
    const isInside = left >= 0 && top >= 0 && left + NODE_WIDTH * scale <= this.#screen.width && top + NODE_HEIGHT * scale <= this.#screen.height;
    return isInside && scale >= FOLLOWED_SCALE / 2;
  }

  #resized(): void {
    const { clientWidth: width } = this.element;
    if (!width) return;
    // A small graph takes only the space it needs, up to the style sheet's limit.
    const wanted = this.layout.height * Math.min(1, (width - 32) / this.layout.width) + ROOM_FOR_TOOLS;
    const isLarge = this.layout.x.length > LARGE;
    this.element.style.height = isLarge ? "100vh" : `${Math.ceil(wanted)}px`;
    const { clientHeight: height } = this.element;
    this.#screen = { width, height };
    this.element.width = width * devicePixelRatio;
    this.element.height = height * devicePixelRatio;
    if (this.#isWhole) this.#view = fitted(this.layout, this.#screen);
    this.#later();
  }

  #move(view: Viewport): void {
    this.#isWhole = false;
    this.#view = view;
    clearTimeout(this.#rest);
    this.#rest = window.setTimeout(() => {
      this.#reported = written(this.#view);
      this.events.moved(this.#view);
    }, REST_MS);
    this.#later();
  }

  #later(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => this.#paint());
  }

  #paint(): void {
    const context = this.element.getContext("2d");
    if (!context || !this.#scene) return;
    this.#palette ??= paletteOf(this.element);
    this.#painter ??= new Painter(context, this.#scene, this.#palette);
    this.#painter.paint(this.#view, this.#screen, devicePixelRatio);
    this.#frame = requestAnimationFrame(() => this.#paintMore());
  }

  #paintMore(): void {
    const isDone = this.#painter?.paintEdges(this.#view, this.#screen) ?? true;
    if (!isDone) this.#frame = requestAnimationFrame(() => this.#paintMore());
  }

  #pressed(event: PointerEvent): void {
    this.element.setPointerCapture(event.pointerId);
    this.#pointers.set(event.pointerId, at(event));
    this.#travelled = 0;
  }

  #dragged(event: PointerEvent): void {
    const before = this.#pointers.get(event.pointerId);
    const here = at(event);
    if (!before) return this.#hover(this.#nodeAt(here));
    const others = [...this.#pointers].filter(([id]) => id !== event.pointerId);
    this.#pointers.set(event.pointerId, here);
    this.#travelled += Math.hypot(here.x - before.x, here.y - before.y);
    const other = others[0]?.[1];
    if (other) {
      const factor = Math.hypot(here.x - other.x, here.y - other.y) / Math.max(1, Math.hypot(before.x - other.x, before.y - other.y));
      return this.#move(zoomed(this.#view, factor, other));
    }
    if (this.#travelled > CLICK_PIXELS) this.#move(moved(this.#view, before.x - here.x, before.y - here.y));
  }

  #released(event: PointerEvent): void {
    const isKnown = this.#pointers.delete(event.pointerId);
    if (isKnown && this.#travelled <= CLICK_PIXELS) this.events.select(this.#nodeAt(at(event)));
  }

  #wheeled(event: WheelEvent): void {
    event.preventDefault();
    if (event.shiftKey) this.#move(moved(this.#view, event.deltaX || event.deltaY, 0));
    else this.#move(zoomed(this.#view, Math.exp(-Math.max(-60, Math.min(60, event.deltaY)) / 250), at(event)));
  }

  #nodeAt(point: { x: number; y: number }): number | null {
    const { x, y, scale } = this.#view;
    return Painter.hit(this.layout, x + point.x / scale, y + point.y / scale);
  }

  #hover(node: number | null): void {
    if (node === this.#hovered) return;
    this.#hovered = node;
    this.element.style.cursor = node === null ? "" : "pointer";
    this.events.hovered(node);
  }
}

const at = (event: MouseEvent): { x: number; y: number } => ({ x: event.offsetX, y: event.offsetY });

/** The theme's colors; the states' colors are read from elements, because a canvas does not support custom properties.
 * */
function paletteOf(element: HTMLCanvasElement): Palette {
  const probe = document.createElement("span");
  probe.hidden = true;
  element.after(probe);
  const color = (name: string) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const states = new Map(
    STATUSES.map((status) => {
      probe.className = `state-${status}`;
      return [status, color(IDLE.has(status) ? "--idle" : "--state")] as const;
    }),
  );
  const { fontFamily: font } = getComputedStyle(element);
  const palette = { states, text: color("--text"), card: color("--card"), line: color("--edge"), accent: color("--accent"), font };
  probe.remove();
  return palette;
}

/** All display states of a node. */
export const STATUSES: readonly string[] = [
  ...["running", "preparing", "waiting", "paused", "scheduled", "blocked", "succeeded", "failed", "rolling_back", "rolled_back"],
  ...["upstream_failed", "skipped", "stopped", "cancelled"],
];
