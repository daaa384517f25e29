// Follows a container's log: appends lines as they come, shows those that match the search, stays at the end while there.
const MAX_LINES = 5000;

export function followLog(pane) {
  if (!pane) return;
  const search = document.getElementById("log-search"), state = document.getElementById("log-state");
  const matches = line => !search.value || line.textContent.toLowerCase().includes(search.value.toLowerCase());
  const atEnd = () => pane.scrollHeight - pane.scrollTop - pane.clientHeight < 40;
  const toEnd = () => { pane.scrollTop = pane.scrollHeight; };
  search?.addEventListener("input", () => {
    for (const line of pane.querySelectorAll(".line")) line.classList.toggle("hidden", !matches(line));
    toEnd();
  });
  toEnd();
  if (!pane.dataset.follow) return;
  const stream = new EventSource(pane.dataset.follow);
  let fresh = true;
  stream.addEventListener("open", () => { fresh = true; state.textContent = "● following"; });
  stream.addEventListener("message", event => {
    if (fresh) { pane.replaceChildren(); fresh = false; }  // the stream begins with the last lines
    const stay = !atEnd(), line = document.createElement("span");
    line.className = "line";
    line.textContent = JSON.parse(event.data) + "\n";
    line.classList.toggle("hidden", !matches(line));
    pane.append(line);
    while (pane.childElementCount > MAX_LINES) pane.firstElementChild.remove();
    if (!stay) toEnd();
  });
  stream.addEventListener("end", () => { stream.close(); state.textContent = "ended"; });
  stream.addEventListener("problem", event => { stream.close(); state.textContent = JSON.parse(event.data); setTimeout(() => location.reload(), 3000); });
  addEventListener("pagehide", () => stream.close());
}
