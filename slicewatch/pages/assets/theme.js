// Light or dark: as the system has it, until somebody chooses; the choice is remembered.

const KEY = "slicewatch-theme";

export function themeButton(button) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
  const show = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Change to ${isDark() ? "light" : "dark"} colours`);
  };
  const chosen = remembered();
  if (chosen) document.documentElement.dataset.theme = chosen;
  button.addEventListener("click", () => {
    const theme = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    remember(theme);
    show();
  });
  dark.addEventListener("change", show);
  show();
}

// A browser may forbid it; then the choice lasts as long as the page.
function remembered() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function remember(theme) {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // Nothing to be done about it.
  }
}
