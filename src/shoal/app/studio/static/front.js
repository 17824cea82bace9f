// The limits of risk and utility: dragged, or moved by arrow keys. Points and form fields follow.

const FIELDS = { risk: "tune-max-risk", utility: "tune-min-utility" };
const KEYS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 };
const STEPS = 100;

const moved = {}; // limits that were moved on this page, kept when the picture grows
let dragged = null;

const picture = () => document.querySelector("svg.front");
const numbers = (text) => text.split(" ").map(Number);

const scale = (svg, limit) => {
  const at = svg.dataset;
  return limit === "risk"
    ? { ends: numbers(at.risks), from: Number(at.left), to: Number(at.right) }
    : { ends: numbers(at.utilities), from: Number(at.base), to: Number(at.top) };
};

const valueOf = (line) => Number(line.getAttribute("aria-valuenow"));

const mark = (svg) => {
  const [risk, utility] = ["risk", "utility"].map((limit) =>
    valueOf(svg.querySelector(`[data-limit="${limit}"]`)),
  );
  let within = 0;
  for (const spot of svg.querySelectorAll(".spot")) {
    const allowed = Number(spot.dataset.risk) <= risk && Number(spot.dataset.utility) >= utility;
    spot.classList.toggle("allowed", allowed);
    within += allowed;
  }
  document.getElementById("front-count").textContent = within;
};

const move = (line, value) => {
  const svg = line.ownerSVGElement;
  const limit = line.dataset.limit;
  const { ends, from, to } = scale(svg, limit);
  const kept = Number(Math.min(Math.max(value, ends[0]), ends[1]).toFixed(3));
  const place = from + ((kept - ends[0]) / (ends[1] - ends[0])) * (to - from);
  line.setAttribute("aria-valuenow", kept);
  line.setAttribute("transform", limit === "risk" ? `translate(${place} 0)` : `translate(0 ${place})`);
  const field = document.getElementById(FIELDS[limit]);
  if (field) field.value = kept;
  moved[limit] = kept;
  mark(svg);
};

const valueAt = (line, event) => {
  const svg = line.ownerSVGElement;
  const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(
    svg.getScreenCTM().inverse(),
  );
  const { ends, from, to } = scale(svg, line.dataset.limit);
  const place = line.dataset.limit === "risk" ? point.x : point.y;
  return ends[0] + ((place - from) / (to - from)) * (ends[1] - ends[0]);
};

document.addEventListener("pointerdown", (event) => {
  dragged = event.target.closest?.(".drag") ?? null;
  if (!dragged) return;
  dragged.setPointerCapture(event.pointerId);
  dragged.focus();
  event.preventDefault();
});

document.addEventListener("pointermove", (event) => {
  if (dragged) move(dragged, valueAt(dragged, event));
});

for (const end of ["pointerup", "pointercancel"]) {
  document.addEventListener(end, () => {
    dragged = null;
  });
}

document.addEventListener("keydown", (event) => {
  const line = event.target.closest?.(".drag");
  if (!line || !(event.key in KEYS)) return;
  const { ends } = scale(line.ownerSVGElement, line.dataset.limit);
  move(line, valueOf(line) + (KEYS[event.key] * (ends[1] - ends[0])) / STEPS);
  event.preventDefault();
});

// The growing picture is not replaced during a drag, and keeps the limits.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (dragged && event.target.id === "front") event.preventDefault();
});

document.addEventListener("htmx:afterSettle", () => {
  const svg = picture();
  if (!svg) {
    for (const limit of Object.keys(moved)) delete moved[limit];
    return;
  }
  for (const [limit, value] of Object.entries(moved)) {
    move(svg.querySelector(`[data-limit="${limit}"]`), value);
  }
});
