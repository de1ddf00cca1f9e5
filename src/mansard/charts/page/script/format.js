// Figures as mansard.units and mansard.charts write them: the same rules, the same letters.

const PREFIXES = [
  ["E", 1e18], ["P", 1e15], ["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3],
  ["", 1], ["m", 1e-3], ["u", 1e-6], ["n", 1e-9],
];

/** As Python's format(value, ".Nf"): a tie goes to the even digit, which toFixed does not do. */
function fixed(value, decimals) {
  if (Math.abs(value) >= 1e21) return BigInt(value).toString() + (decimals ? `.${"0".repeat(decimals)}` : "");
  if (Object.is(value, -0)) return `-${fixed(0, decimals)}`;
  const exact = value.toFixed(decimals + 60);
  const cut = exact.length - 60;
  const even = /^50*$/.test(exact.slice(cut)) && "02468".includes(exact.slice(0, cut).match(/\d(?=\D*$)/)[0]);
  return even ? exact.slice(0, cut).replace(/\.$/, "") : value.toFixed(decimals);
}

/** As Python's format(value, ".Ng") without its exponents: for 1e-4 <= value < 10 ** digits. */
function general(value, digits) {
  const exponent = Number(value.toExponential(digits - 1).split("e")[1]);
  const text = fixed(value, Math.max(0, digits - 1 - exponent));
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** A value with a decimal prefix, e.g. "4.62 TB/s"; "-" when unknown. */
function formatSi(value, unit = "", digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return "-";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  if (value === 0) return `0 ${unit}`.trimEnd();
  // 999.6 must become 1.00 k, not 1000: compare after rounding to the digits shown.
  const rounded = Number(Math.abs(value).toPrecision(digits));
  const [prefix, factor] = PREFIXES.find((entry) => rounded >= entry[1]) ?? PREFIXES.at(-1);
  const scaled = value / factor;
  const whole = BigInt(Math.max(1, Math.trunc(Math.abs(scaled)))).toString().length;
  return `${fixed(scaled, Math.max(0, digits - whole))} ${prefix}${unit}`.trimEnd();
}

/** A share as percent; never 0 % or 100 % unless it is exactly so. */
function formatShare(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "-";
  const percent = 100 * value;
  const text = fixed(percent, 1);
  if (text === "100.0" && percent < 100) return "99.9 %";
  if (text === "0.0" && percent > 0) return "<0.1 %";
  return `${text} %`;
}

/** FLOP/byte in at most six letters; "-" when unknown. */
function formatIntensity(value) {
  if (!known(value)) return "-";
  if (value === 0) return Object.is(value, -0) ? "-0" : "0";
  if (value >= 0.01 && value < 999.5) return general(value, 3);
  if (value >= 0.001 && value < 0.01) return general(value, 2);
  if (value >= 999.5 && value < 99999.5) return fixed(value, 0);
  // Two digits of exponent, and a tie to the even digit.
  const [digit, exponent] = value.toExponential(0).split("e");
  const [exact, floor] = value.toExponential(60).split("e");
  const tie = /^[02468]\.50*$/.test(exact);
  const power = Number(tie ? floor : exponent);
  return `${tie ? exact[0] : digit}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
}

function known(value) {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}

/** A number with its noun: "1 launch", "2 launches". */
function countText(count, word) {
  if (count === 1) return `1 ${word}`;
  return `${count} ${word}${word.endsWith("ch") ? "es" : "s"}`;
}

const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;

/** One visible line of at most `limit` characters; long names lose their middle. */
function printable(text, limit = 200) {
  if (text === null || text === undefined) return "-";
  const letters = Array.from(text);
  if (letters.length <= limit) return text.replace(HIDDEN, "\uFFFD");
  const head = Math.floor(((limit - 3) * 2) / 3);
  const kept = [...letters.slice(0, head), "...", ...letters.slice(letters.length - (limit - 3 - head))];
  return kept.join("").replace(HIDDEN, "\uFFFD");
}
