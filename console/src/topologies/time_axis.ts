/** A time axis on which long idle stretches are folded to a narrow strip. */
export interface Stretch {
  start: number;
  end: number;
}

export interface Fold extends Stretch {
  /** The fold's position on the axis, 0 to 1. */
  at: number;
  width: number;
}

export interface TimeAxis extends Stretch {
  folds: readonly Fold[];
  /** The position of a time on the axis, 0 to 1. */
  place: (time: number) => number;
}

/** An idle stretch is folded if it is longer than this share of the busy time. */
const FOLDED_ABOVE = 0.15;
const FOLD_WIDTH = 0.025;

export function timeAxis(stretches: readonly Stretch[], isFolding: boolean): TimeAxis {
  const busy = united(stretches);
  const start = busy[0]?.start ?? 0;
  const end = Math.max(start + 1, busy.at(-1)?.end ?? 0);
  const total = busy.reduce((sum, each) => sum + each.end - each.start, 0) || 1;
  const pauses = busy.slice(1).map((next, at) => ({ start: busy[at]?.end ?? 0, end: next.start }));
  const folded = isFolding ? pauses.filter((pause) => pause.end - pause.start > total * FOLDED_ABOVE) : [];
  const width = Math.min(FOLD_WIDTH, 0.5 / (folded.length || 1));
  const shown = end - start - folded.reduce((sum, pause) => sum + pause.end - pause.start, 0) || 1;
  const scale = (1 - width * folded.length) / shown;

  const pieces: { from: number; to: number; at: number; scale: number }[] = [];
  const folds: Fold[] = [];
  let [from, at] = [start, 0];
  for (const pause of [...folded, { start: end, end }]) {
    pieces.push({ from, to: pause.start, at, scale });
    at += (pause.start - from) * scale;
    if (pause.end > pause.start) {
      pieces.push({ from: pause.start, to: pause.end, at, scale: width / (pause.end - pause.start) });
      folds.push({ ...pause, at, width });
      at += width;
    }
    from = pause.end;
  }
  const place = (time: number) => {
    const [piece = { from: start, to: end, at: 0, scale }] = pieces.filter((each) => time >= each.from).slice(-1);
    return Math.min(1, piece.at + Math.max(0, Math.min(time, piece.to) - piece.from) * piece.scale);
  };
  return { start, end, folds, place };
}

/** The busy periods. */
function united(stretches: readonly Stretch[]): Stretch[] {
  const made: Stretch[] = [];
  for (const { start, end } of [...stretches].sort((one, other) => one.start - other.start)) {
    const last = made.at(-1);
    if (last && start <= last.end) last.end = Math.max(last.end, end);
    else made.push({ start, end });
  }
  return made;
}

const STEPS_MS = [100, 200, 500, 1e3, 2e3, 5e3, 1e4, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5, 72e5, 216e5, 864e5];

/** Round times for approximately a number of marks. */
export function marks(axis: TimeAxis, count: number): number[] {
  const shown = axis.end - axis.start - axis.folds.reduce((sum, fold) => sum + fold.end - fold.start, 0);
  const step = STEPS_MS.find((each) => shown / each <= count) ?? Math.ceil(shown / count / 864e5) * 864e5;
  const made: number[] = [];
  for (let time = Math.ceil(axis.start / step) * step; time <= axis.end; time += step) {
    const fold = axis.folds.find((each) => time > each.start && time < each.end);
    // No marks within a fold.
    if (fold) time = Math.ceil(fold.end / step) * step - step;
    else made.push(time);
  }
  return made;
}
