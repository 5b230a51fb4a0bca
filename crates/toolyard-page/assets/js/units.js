// Times and sizes as people read them.

/** A time in about three digits, from microseconds: `12 µs`, `4.20 ms`, `17.3 ms`, `2.41 s`, `3 min 20 s`. */
export function brief(micros) {
  if (!(micros >= 0)) return "–";
  if (micros < 100) return `${Math.round(micros)} µs`;
  if (micros < 10_000) return `${(micros / 1000).toFixed(2)} ms`;
  if (micros < 100_000) return `${(micros / 1000).toFixed(1)} ms`;
  if (micros < 1_000_000) return `${(micros / 1000).toFixed(0)} ms`;
  if (micros < 100_000_000) return `${(micros / 1e6).toFixed(2)} s`;
  const seconds = Math.round(micros / 1e6);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

/** A round time on an axis whose ticks are `step` apart. */
export function tick(micros, step) {
  if (micros === 0) return "0";
  const [unit, name] = step < 1000 ? [1, "µs"] : step < 1e6 ? [1000, "ms"] : [1e6, "s"];
  const digits = step / unit < 1 ? 1 : 0;
  return `${(micros / unit).toLocaleString("en", { maximumFractionDigits: digits })} ${name}`;
}

/** The time of day in this browser's zone. */
export function clock(wallMs) {
  return new Date(wallMs).toLocaleTimeString("en-GB", { hour12: false });
}

/** Day and time. */
export function moment(wallMs) {
  const date = new Date(wallMs);
  const day = date.toLocaleDateString("en-GB", { year: "numeric", month: "short", day: "numeric" });
  return `${day}, ${date.toLocaleTimeString("en-GB", { hour12: false })}`;
}

/** `120 B`, `4.2 KiB`. */
export function size(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(1)} KiB`;
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

/** `1 call`, `2,400 calls`. */
export function count(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}
