// Light and dark: what the system says, until somebody chooses.

import { iconButton } from "./controls.js";

const KEPT = "toolyard-theme";

/** The switch; also applies what was chosen before. */
export function themeSwitch() {
  const before = kept();
  if (before) document.documentElement.dataset.theme = before;
  const button = iconButton("sun", "Light or dark", () => {
    const next = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    keep(next);
    redraw();
  });
  const pictures = [iconButton("sun", "", null).firstChild, iconButton("moon", "", null).firstChild];
  const redraw = () => button.replaceChildren(pictures[isDark() ? 0 : 1]);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  redraw();
  return button;
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

// Storage may be forbidden, as for some files opened from a disk; then the choice lasts as long as the page.
function kept() {
  try {
    const theme = localStorage.getItem(KEPT);
    return theme === "light" || theme === "dark" ? theme : null;
  } catch {
    return null;
  }
}

function keep(theme) {
  try {
    localStorage.setItem(KEPT, theme);
  } catch {
    // It still holds for this page.
  }
}
