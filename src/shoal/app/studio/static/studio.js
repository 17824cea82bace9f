// News from the server: progress of jobs, and changes that were made to the plan elsewhere.

const page = () => document.getElementById("page");

// A page is not replaced while someone types into it.
const isTouched = () =>
  [...page().querySelectorAll("input:not([type=hidden]), textarea, select")].some((field) =>
    field.matches("[type=checkbox], [type=radio]")
      ? field.checked !== field.defaultChecked
      : field.matches("select")
        ? [...field.options].some((o) => o.selected !== o.defaultSelected) &&
          [...field.options].some((o) => o.defaultSelected)
        : !field.readOnly && field.value !== field.defaultValue,
  ) || document.activeElement?.matches("input:not([type=checkbox]):not([type=radio]), textarea");

const refresh = () =>
  htmx.ajax("GET", location.pathname + location.search, {
    target: "#page", select: "#page", swap: "outerHTML show:none",
  });

const say = (sentence) => {
  const news = document.getElementById("news");
  if (!news) return;
  const line = document.createElement("p");
  line.className = "note";
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Show";
  button.addEventListener("click", refresh);
  line.append(sentence + " ", button);
  news.replaceChildren(line);
};

// A running request brings its own page, which a refresh would replace.
let underWay = 0;
let missed = "";

const refreshOrSay = (sentence) => {
  if (underWay) missed = sentence;
  else if (isTouched()) say(sentence);
  else refresh();
};

const isForPage = (event) => event.detail.requestConfig?.target?.id === "page";
const isByHand = (event) =>
  ["click", "submit"].includes(event.detail.requestConfig?.triggeringEvent?.type);

// A request that the page makes by itself gives way, since it would replace what was clicked.
const byItself = new Set();
document.addEventListener("htmx:beforeRequest", (event) => {
  if (!isForPage(event) || isByHand(event) || !underWay) return;
  event.preventDefault();
  missed ||= "There are new results.";
});
document.addEventListener("htmx:beforeSend", (event) => {
  if (!isForPage(event)) return;
  underWay += 1;
  if (isByHand(event)) byItself.clear();
  else byItself.add(event.detail.xhr);
});
document.addEventListener("htmx:beforeSwap", (event) => {
  if (!isForPage(event) || isByHand(event) || byItself.has(event.detail.xhr)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
});
document.addEventListener("htmx:afterRequest", (event) => {
  byItself.delete(event.detail.xhr);
  underWay -= isForPage(event);
  if (underWay || !missed) return;
  const sentence = missed;
  missed = "";
  refreshOrSay(sentence);
});

const running = new Set();

const isShownAsRunning = (id) => document.querySelector(`[data-job="${id}"] progress`) !== null;

const hearOfVersion = (event) => {
  if (page() && page().dataset.version !== event.data) refreshOrSay("The plan was changed elsewhere.");
};

const hearOfJob = (event) => {
  const job = JSON.parse(event.data);
  if (job.state === "running") {
    const isNew = !running.has(job.id);
    running.add(job.id);
    if (isNew && !document.querySelector(`[data-job="${job.id}"]`)) refreshOrSay("A job has started.");
  } else if (running.delete(job.id) || isShownAsRunning(job.id)) {
    refreshOrSay("A job has ended.");
  }
  for (const place of document.querySelectorAll(`[data-job="${job.id}"]`)) {
    const bar = place.querySelector("progress");
    if (bar) bar.value = job.share;
    const label = place.querySelector(".label");
    if (label) label.textContent = job.state === "running" ? job.label : job.state;
    const left = place.querySelector(".left");
    if (left) left.textContent = job.left;
  }
};

// A browser keeps six connections to a server, so only the visible tab holds one.
let events = null;

const listen = () => {
  const wanted = document.visibilityState === "visible";
  if (wanted && !events) {
    events = new EventSource("/events");
    events.addEventListener("version", hearOfVersion);
    events.addEventListener("job", hearOfJob);
  } else if (!wanted && events) {
    events.close();
    events = null;
  }
};

document.addEventListener("visibilitychange", listen);
window.addEventListener("pagehide", () => {
  events?.close();
  events = null;
});
window.addEventListener("pageshow", listen);

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const text = document.getElementById(button.dataset.copy).value;
  navigator.clipboard.writeText(text).then(() => {
    button.textContent = "Copied";
  });
});

// A choice is sent as soon as it is made, but not because a new page replaces it.
let isSwapping = false;
document.addEventListener("change", (event) => {
  const form = event.target.closest("form[data-at-once]");
  if (form && !isSwapping) form.requestSubmit();
});

// Another screen starts at its top; the same one keeps its position and its open drawers.
let screen = location.pathname;
let opened = [];
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.target !== page()) return;
  opened = [...page().querySelectorAll("details[id][open]")].map((drawer) => drawer.id);
});
document.addEventListener("htmx:pushedIntoHistory", (event) => {
  const now = event.detail.path.split("?")[0];
  if (now !== screen) {
    opened = [];
    window.scrollTo(0, 0);
  }
  screen = now;
});
// On a phone the rooms are in a row: scroll the open one into view.
const showRoom = () => {
  const here = document.querySelector("nav.rooms [aria-current]");
  if (here) here.closest("ol").scrollLeft = here.offsetLeft - 16;
};
document.addEventListener("htmx:afterSettle", () => {
  showRoom();
  for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
  opened = [];
});
window.addEventListener("popstate", () => {
  screen = location.pathname;
});

// Text that is typed but not yet sent survives a new page, unless its own form was sent.
const typed = () =>
  [...page().querySelectorAll("input[id]:not([type=hidden]):not([type=checkbox]):not([type=radio]), textarea[id]")]
    .filter((field) => !field.readOnly && field.value !== field.defaultValue);
let unsent = [];
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.target !== page()) return;
  isSwapping = true;
  const sent = event.detail.requestConfig?.elt?.closest("form");
  unsent = typed().filter((field) => !sent?.contains(field)).map((field) => [field.id, field.value]);
});
document.addEventListener("htmx:afterSwap", () => {
  isSwapping = false;
  for (const [id, text] of unsent) {
    const field = document.getElementById(id);
    if (field) field.value = text;
  }
  unsent = [];
});

// A choice that was refused is also reset on the page.
document.addEventListener("htmx:afterRequest", (event) => {
  const form = event.detail.elt.closest?.("form[data-at-once]");
  if (event.detail.xhr.status < 400 || !form) return;
  for (const option of form.querySelectorAll("option")) option.selected = option.defaultSelected;
});

showRoom();
listen();
