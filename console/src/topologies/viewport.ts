/** The visible part of a picture, given by its top left corner and the pixels per unit. */
export interface Viewport {
  x: number;
  y: number;
  scale: number;
}

export interface Size {
  width: number;
  height: number;
}

const LARGEST = 2;
const SMALLEST = 0.01;
const MARGIN = 16;
/** Space for the buttons above the picture. */
const TOP = 46;

/** The complete picture, centered; small pictures are not enlarged. */
export function fitted(picture: Size, screen: Size): Viewport {
  const [width, height] = [screen.width - 2 * MARGIN, screen.height - TOP - MARGIN];
  const scale = bounded(Math.min(1, width / picture.width, height / picture.height));
  const top = TOP + Math.max(0, height - picture.height * scale) / 2;
  return { x: (picture.width - screen.width / scale) / 2, y: -top / scale, scale };
}

const bounded = (scale: number): number => Math.min(LARGEST, Math.max(SMALLEST, scale));

/** Zoom around a point of the screen. */
export function zoomed(view: Viewport, factor: number, at: { x: number; y: number }): Viewport {
  const scale = bounded(view.scale * factor);
  return { x: view.x + at.x / view.scale - at.x / scale, y: view.y + at.y / view.scale - at.y / scale, scale };
}

export const moved = (view: Viewport, dx: number, dy: number): Viewport => ({ ...view, x: view.x + dx / view.scale, y: view.y + dy / view.scale });

/** Center a point. */
export const centered = (view: Viewport, screen: Size, x: number, y: number, scale = view.scale): Viewport => ({
  x: x - screen.width / scale / 2,
  y: y - screen.height / scale / 2,
  scale,
});

/** Convert a viewport to a part of an address, and back. */
export const written = (view: Viewport): string => [Math.round(view.x), Math.round(view.y), view.scale.toPrecision(3)].join(",");

export function parsedViewport(text: string | null): Viewport | null {
  const [x, y, scale] = (text ?? "").split(",").map(Number);
  return x !== undefined && y !== undefined && scale && [x, y, scale].every(Number.isFinite) ? { x, y, scale: bounded(scale) } : null;
}
