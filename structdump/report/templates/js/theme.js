// Light, dark, or what the system says.

const THEMES = ["auto", "light", "dark"];

function startTheme() {
  let theme = "auto";
  try {
    theme = localStorage.getItem("structdump-theme") || "auto";
  } catch {
    // A browser that keeps nothing for files shows the system's colours.
  }
  const toggle = document.getElementById("theme");
  const apply = (next) => {
    theme = THEMES.includes(next) ? next : "auto";
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    const name = { auto: "Auto", light: "Light", dark: "Dark" }[theme];
    toggle.textContent = name;
    toggle.setAttribute("aria-label", `Colours: ${{ auto: "automatic", light: "light", dark: "dark" }[theme]}`);
    try {
      localStorage.setItem("structdump-theme", theme);
    } catch {
      // as above
    }
  };
  apply(theme);
  toggle.addEventListener("click", () => apply(THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]));
}
