(function () {
  var root = document.documentElement, button = document.getElementById("theme");
  var dark = window.matchMedia("(prefers-color-scheme: dark)");
  function isDark() { return (root.dataset.theme || (dark.matches ? "dark" : "light")) === "dark"; }
  function show() { button.setAttribute("aria-checked", String(isDark())); }
  button.hidden = false;
  button.addEventListener("click", function () {
    root.dataset.theme = isDark() ? "light" : "dark";
    show();
  });
  dark.addEventListener("change", show);
  show();
})();
