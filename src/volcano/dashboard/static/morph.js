// Makes the children of an element equal to new ones, and keeps what did not change: focus, selection, scroll positions.
const keyOf = node => node.nodeType === Node.ELEMENT_NODE ? node.dataset?.key || node.id || "" : "";
const isSame = (one, other) => one.nodeType === other.nodeType && one.nodeName === other.nodeName && keyOf(one) === keyOf(other);

export function morph(parent, wanted) {
  const known = new Map();
  for (const child of parent.childNodes) { const key = keyOf(child); if (key) known.set(key, child); }
  let at = parent.firstChild;
  for (const next of wanted) {
    const key = keyOf(next);
    let found = key ? known.get(key) : null;
    if (found && !isSame(found, next)) found = null;
    if (!found && at && !keyOf(at) && isSame(at, next)) found = at;
    if (!found) { parent.insertBefore(document.adoptNode(next), at); continue; }
    if (found !== at) parent.insertBefore(found, at); else at = at.nextSibling;
    update(found, next);
  }
  while (at) { const rest = at.nextSibling; at.remove(); at = rest; }
}

function update(node, next) {
  if (node.nodeType !== Node.ELEMENT_NODE) { if (node.nodeValue !== next.nodeValue) node.nodeValue = next.nodeValue; return; }
  if (node.isEqualNode(next) || "keep" in (node.dataset ?? {})) return;
  if (node.dataset?.load && node.dataset.load === next.dataset?.load) return;  // loaded by itself
  for (const { name } of [...node.attributes]) if (!next.hasAttribute(name) && !(name === "open" && node.nodeName === "DETAILS")) node.removeAttribute(name);
  for (const { name, value } of next.attributes) if (node.getAttribute(name) !== value) node.setAttribute(name, value);
  if (node === document.activeElement && node.matches("input, select, textarea")) return;
  if (node.nodeName === "TEXTAREA") return;
  morph(node, [...next.childNodes]);
}
