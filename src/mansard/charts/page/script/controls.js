// Controls that every page has: theme, print, filters, files to take away.

function cell(kind, text = "") {
  const made = document.createElement(kind);
  made.textContent = text;
  return made;
}

function fillSelect(select, choices) {
  select.replaceChildren(...choices.map(([value, words]) => {
    const option = document.createElement("option");
    option.value = value;
    option.textContent = words;
    return option;
  }));
}

/** Let the controls of a form choose. */
function tieFilters(form) {
  form.addEventListener("input", (event) => {
    if (event.target.name) update({ [event.target.name]: event.target.value });
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", (event) => {
    event.preventDefault();
    clearFilters();
  });
}

const THEMES = ["", "light", "dark"];

function applyTheme() {
  document.documentElement.dataset.theme = THEMES.includes(state.theme) ? state.theme : "";
  document.getElementById("theme").textContent = `Theme: ${state.theme || "system"}`;
}

/** The buttons for theme and paper. */
function tieTools() {
  document.getElementById("theme").addEventListener("click", () => update({ theme: THEMES[(THEMES.indexOf(state.theme) + 1) % 3] }));
  document.getElementById("print").addEventListener("click", () => window.print());
}

/** Paper gets the light theme and everything that can be folded; the screen its own back. */
function openForPrint(isPrinting) {
  document.documentElement.dataset.theme = isPrinting ? "light" : state.theme;
  for (const details of document.querySelectorAll("main details")) {
    if (isPrinting) details.dataset.wasOpen = details.open;
    details.open = isPrinting || details.dataset.wasOpen === "true";
  }
}

/** Hand a text to the reader as a file. */
function save(text, name, kind) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: kind }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** A label as the beginning of a file name. */
function stem(label) {
  return label.replace(/\.[a-z-]{1,8}$/i, "").replace(/[^\w.-]+/g, "-").slice(0, 60) || "run";
}

/** Say on the page that it could not be put to work. */
function failed(error) {
  const failure = document.getElementById("failure");
  failure.hidden = false;
  failure.textContent = `The charts and tables could not be drawn: ${error.message}`;
  throw error;
}
