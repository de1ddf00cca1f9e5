// What the reader chose, kept in the address after "#", so that a view can be linked and kept.
// Which choices there are (FILTERS, DEFAULTS) is the page's.

const state = { ...DEFAULTS };
const listeners = [];

/** Call `listener(changed)` with the names of what changed, after every change. */
function listen(listener) {
  listeners.push(listener);
}

/** Change what is chosen, write it into the address, tell everyone. */
function update(changes) {
  const changed = Object.keys(changes).filter((key) => key in state && state[key] !== changes[key]);
  if (!changed.length) return;
  for (const key of changed) state[key] = changes[key];
  const written = new URLSearchParams();
  for (const key of Object.keys(state)) if (state[key] !== DEFAULTS[key]) written.set(key, state[key]);
  history.replaceState(null, "", `#${written}`);
  for (const listener of listeners) listener(new Set(changed));
}

/** Take over what the address says; filters that it does not name are cleared. */
function readAddress() {
  const stated = new URLSearchParams(location.hash.slice(1));
  const read = {};
  for (const key of [...FILTERS, "select"]) read[key] = stated.get(key) ?? "";
  for (const key of ["by", "sort", "theme"]) if (stated.has(key)) read[key] = stated.get(key);
  update(read);
}

function clearFilters() {
  update(Object.fromEntries(FILTERS.map((key) => [key, ""])));
}

/** Whether a name holds all the words that the reader looks for. */
function hasWords(name) {
  const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
  return words.length === 0 || words.every((word) => name.toLowerCase().includes(word));
}
