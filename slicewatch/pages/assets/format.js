// Numbers for people. What is not known is a dash with a name, never a zero.

export const UNKNOWN = "–";

const known = (value) => value !== undefined && value !== null;

/** 0 to 100. */
export const percent = (value) => (known(value) ? `${Math.round(value)} %` : UNKNOWN);

/** 0 to 1. */
export const ratio = (value) => (known(value) ? percent(100 * value) : UNKNOWN);

export function watts(value) {
  if (!known(value)) return UNKNOWN;
  return value < 10_000 ? `${Math.round(value)} W` : `${(value / 1000).toFixed(1)} kW`;
}

export const celsius = (value) => (known(value) ? `${Math.round(value)} °C` : UNKNOWN);

/** GiB, as nvidia-smi means its MiB. */
export function bytes(value) {
  if (!known(value)) return UNKNOWN;
  const gib = value / 2 ** 30;
  if (gib >= 10_000) return `${(gib / 1024).toFixed(1)} TiB`;
  return `${gib < 10 ? gib.toFixed(1) : Math.round(gib)} GiB`;
}

export const of = (value, whole, format) =>
  known(value) && known(whole) ? `${format(value)} of ${format(whole)}` : format(value);

export function seconds(value) {
  if (!known(value)) return UNKNOWN;
  if (value < 90) return `${Math.round(value)} s`;
  return value < 5400 ? `${Math.round(value / 60)} min` : `${Math.round(value / 3600)} h`;
}

export const dollars = (value) => (known(value) ? `$${value.toFixed(2)}/h` : UNKNOWN);

/** "1 GPU", "2 GPUs". */
export const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;
