// What pages do beyond showing: follow changes, write times in the reader's zone, load slow parts, follow logs.
import { morph } from "./morph.js";
import { followLog } from "./log.js";

document.documentElement.classList.add("scripted");
const main = document.getElementById("main");

// -- theme ------------------------------------------------------------------------------------------------------
const themes = ["auto", "light", "dark"];
function setTheme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = name;
  const button = document.getElementById("theme");
  if (button) button.textContent = `Theme: ${name}`;
}
let theme = localStorage.getItem("theme") ?? "auto";
setTheme(themes.includes(theme) ? theme : "auto");
document.getElementById("theme")?.addEventListener("click", () => {
  theme = themes[(themes.indexOf(theme) + 1) % themes.length];
  localStorage.setItem("theme", theme);
  setTheme(theme);
});

// -- times ------------------------------------------------------------------------------------------------------
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "numeric", minute: "2-digit" });
function span(seconds) {  // as kubectl writes ages
  const s = Math.max(0, Math.floor(seconds)), m = Math.floor(s / 60), h = Math.floor(s / 3600), d = Math.floor(h / 24);
  if (s < 120) return `${s}s`;
  if (m < 10) return s % 60 ? `${m}m${s % 60}s` : `${m}m`;
  if (m < 180) return `${m}m`;
  if (h < 8) return m % 60 ? `${h}h${m % 60}m` : `${h}h`;
  if (h < 48) return `${h}h`;
  if (d < 8) return h % 24 ? `${d}d${h % 24}h` : `${d}d`;
  return `${d}d`;
}
export function writeTimes(root = document) {
  const now = Date.now();
  for (const element of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(element.dateTime);
    if (isNaN(moment)) continue;
    const form = element.dataset.form;
    const text = form === "age" ? span((now - moment) / 1000) : form === "time" ? (now - moment > 72e6 ? day : clock).format(moment) : full.format(moment);
    if (element.textContent !== text) element.textContent = text;
    if (form !== "full") element.title = full.format(moment);
  }
}
writeTimes();
setInterval(() => { if (!document.hidden && !document.body.dataset.past) writeTimes(); }, 5000);

// -- parts that are slow to make --------------------------------------------------------------------------------
async function loadParts() {
  for (const section of document.querySelectorAll("[data-load]")) {
    const last = Number(section.dataset.loadedAt ?? 0), pause = 1000 * Number(section.dataset.reload ?? 10);
    if (section.dataset.loading || Date.now() - last < pause) continue;
    section.dataset.loading = "yes";
    try {
      const answer = await fetch(section.dataset.load, { headers: { "x-part": "main" } });
      const made = new DOMParser().parseFromString(await answer.text(), "text/html");
      const body = made.querySelector("[data-loaded]") ?? made.querySelector(".notice");
      if (body) { morph(section, [...(body.matches("[data-loaded]") ? body.childNodes : [body])]); writeTimes(section); }
    } catch { /* the link stays */ }
    section.dataset.loadedAt = String(Date.now());
    delete section.dataset.loading;
  }
}

// -- changes ----------------------------------------------------------------------------------------------------
let tag = "", busy = false, again = false;
export async function redraw() {
  if (busy || document.hidden) { again = true; return; }
  busy = true; again = false;
  try {
    const answer = await fetch(location.href, { headers: { "x-part": "main", ...(tag ? { "if-none-match": tag } : {}) } });
    if (answer.status === 401) { location.reload(); return; }
    if (answer.status === 200) {
      tag = answer.headers.get("etag") ?? "";
      const made = new DOMParser().parseFromString(await answer.text(), "text/html");
      writeTimes(made);
      morph(main, [...made.body.childNodes]);
      loadParts();
    }
  } catch { /* the stream tells when the server is back */ } finally { busy = false; }
  if (again) setTimeout(redraw, 500);
}
const topics = document.body.dataset.topics;
const state = document.getElementById("live");
if (topics && state) {
  const stream = new EventSource(`/live?topics=${topics}`);
  state.hidden = false;
  let was = "";
  const say = (text, name) => { if (was !== name) { state.textContent = text; state.className = `live ${name}`; was = name; } };
  stream.addEventListener("open", () => { say("● Live", "on"); redraw(); });  // what changed before it was open is not told
  stream.addEventListener("error", () => say("○ Not connected", "off"));
  stream.addEventListener("change", redraw);
  document.addEventListener("visibilitychange", () => { if (!document.hidden && again) redraw(); });
  addEventListener("pagehide", () => stream.close());
}
loadParts();
setInterval(() => { if (!document.hidden) loadParts(); }, 5000);

// -- the past -----------------------------------------------------------------------------------------------------
const stamp = moment => new Date(Math.floor(moment / 1000) * 1000).toISOString().replace(".000Z", "Z");
function addressAt(moment) {
  const place = new URL(location.href);
  if (moment >= Date.now() - 30_000) place.searchParams.delete("at"); else place.searchParams.set("at", stamp(moment));
  return place;
}
document.addEventListener("change", event => {
  if (event.target.id === "slide") location.href = addressAt(Date.now() + 60_000 * Number(event.target.value));
});
let playing = 0;
document.addEventListener("click", event => {
  if (event.target.id !== "play") return;
  if (playing) { clearInterval(playing); playing = 0; location.reload(); return; }
  let at = document.body.dataset.past ? new Date(document.body.dataset.past).getTime() : Date.now() - 600_000;
  document.body.dataset.past = stamp(at);
  playing = setInterval(async () => {  // one minute of the past in one second
    at += 60_000;
    const place = addressAt(at);
    if (!place.searchParams.has("at")) { clearInterval(playing); location.href = place; return; }
    history.replaceState(null, "", place);
    await redraw();
    const button = document.getElementById("play");
    if (button) button.textContent = "Pause";
  }, 1000);
});

// -- forms and keys -----------------------------------------------------------------------------------------------
document.addEventListener("change", event => {
  const form = event.target.closest?.("form[data-auto]");
  if (form && event.target.matches("select, input[type=checkbox], input[type=radio]")) submit(form);
});
document.addEventListener("submit", event => {
  if (event.target.matches("form[data-auto]")) { event.preventDefault(); submit(event.target); }
});
function submit(form) {  // without the empty parameters, so that addresses stay short
  const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
  location.href = `${form.getAttribute("action") ?? location.pathname}?${query}`;
}
const places = { o: "/", j: "/jobs", q: "/queues", n: "/nodes", f: "/flows", t: "/topology", d: "/decisions", u: "/usage", s: "/settings" };
let began = 0;
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select, textarea")) return;
  if (event.key === "/") { const field = document.querySelector("[data-slash]"); if (field) { event.preventDefault(); field.focus(); field.select(); } }
  else if (event.key === "g") began = Date.now();
  else if (Date.now() - began < 1200 && places[event.key]) location.href = places[event.key];
});
document.addEventListener("click", event => {
  const button = event.target.closest?.("[data-copy]");
  if (!button) return;
  navigator.clipboard?.writeText(document.querySelector(button.dataset.copy).textContent);
  button.textContent = "Copied";
});
followLog(document.getElementById("log"));
