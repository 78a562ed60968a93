/** Formats amounts from millionths of a dollar per task to many dollars per day. */
const MICRO = 1e6;

/** An estimate such as `$12.30`, `$0.0042` or `4.2 µ$`, with two significant digits below a cent. */
export function dollars(amount: number): string {
  if (amount === 0) return "$0";
  if (amount >= 0.995) return `$${amount.toFixed(2)}`;
  if (amount >= 0.01) return `$${amount.toFixed(3)}`;
  if (amount >= 0.001) return `$${amount.toFixed(4)}`;
  const micro = amount * MICRO;
  return `${micro >= 100 ? Math.round(micro).toLocaleString("en") : micro.toPrecision(2)} µ$`;
}
