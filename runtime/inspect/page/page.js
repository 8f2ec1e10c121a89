// The page over /debug/tree and /debug/events. What actors and peers are called enters it as text, never as markup.
"use strict";

const $ = (id) => document.getElementById(id);
let key = "", paused = false, last = null, seen = 0;

const headers = () => (key ? { Authorization: "Bearer " + key } : {});

function el(tag, cls, text) {
  const e = document.createElement(tag);
  if (cls) e.className = cls;
  if (text !== undefined) e.textContent = text;
  return e;
}

function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (n >= 1024 && i < units.length - 1) { n /= 1024; i++; }
  return (i && n < 10 ? n.toFixed(1) : Math.round(n)) + " " + units[i];
}

function span(ms) {
  if (ms < 1000) return ms + " ms";
  const s = ms / 1000;
  if (s < 60) return s.toFixed(s < 10 ? 1 : 0) + " s";
  if (s < 3600) return Math.floor(s / 60) + " min";
  if (s < 86400) return (s / 3600).toFixed(1) + " h";
  return (s / 86400).toFixed(1) + " d";
}

function status(text, bad) {
  $("state").textContent = text;
  $("state").className = bad ? "bad" : "";
}

function busy(n) {
  return n.queue.n > 0 || n.doing || n.owes.length > 0 || n.state !== "running" || Object.keys(n.refused).length > 0 || n.children.some(busy);
}

function matches(n, words) {
  const text = (n.path.split("/").pop() + " " + n.kind + " " + n.state + " " + JSON.stringify(n.attrs || {})).toLowerCase();
  return words.every((w) => text.includes(w)) || n.children.some((c) => matches(c, words));
}

function row(n, parent) {
  const r = el("div", "row");
  r.append(el("span", "name", n.path.split("/").pop()), " ", el("span", "kind", n.kind + " · gen " + n.gen), " ", el("span", "tag " + n.state, n.state), " ", el("span", "kind", span(n.since_ms)));
  const facts = el("div", "facts");
  const fact = (text, cls) => facts.append(el("span", cls, text));
  if (n.doing) fact("in " + n.doing.type + " for " + span(n.doing.for_ms), n.doing.for_ms > 1000 ? "bad" : "hot");
  if (n.queue.n) fact(n.queue.n + " queued, " + bytes(n.queue.bytes) + ", oldest " + span(n.queue.oldest_ms), n.queue.oldest_ms > 1000 ? "bad" : "hot");
  if (n.account.scope && (!parent || parent.account.scope !== n.account.scope)) {
    const meter = el("meter");
    meter.max = n.account.limit || 1;
    meter.high = meter.max * 0.8;
    meter.optimum = 0;
    meter.value = n.account.used;
    facts.append(meter, el("span", "", " " + bytes(n.account.used) + " of " + bytes(n.account.limit)));
  }
  if (n.owes.length) fact("owes " + n.owes.map((o) => o.name + " (" + span(o.for_ms) + ")").join(", "));
  for (const [scope, count] of Object.entries(n.refused)) fact("refused " + count + " " + scope, "hot");
  if (n.restarts) fact(n.restarts + " restarts", "hot");
  for (const [name, value] of Object.entries(n.attrs || {})) fact(name + ": " + (typeof value === "object" ? JSON.stringify(value) : value));
  if (n.hidden) fact(n.hidden + " more");
  if (facts.childNodes.length) r.append(facts);
  return r;
}

function branch(n, parent, words, onlyBusy) {
  const item = el("li");
  item.append(row(n, parent));
  const list = el("ul");
  for (const child of n.children) {
    if (words.length && !matches(child, words)) continue;
    if (onlyBusy && !busy(child)) continue;
    list.append(branch(child, n, words, onlyBusy));
  }
  if (list.childNodes.length) item.append(list);
  return item;
}

function draw() {
  if (!last) return;
  const pod = $("pod");
  pod.replaceChildren();
  for (const [name, value] of Object.entries(last.pod)) {
    const card = el("div");
    card.append(el("dt", "", name.replaceAll("_", " ")), el("dd", "", name.includes("bytes") ? bytes(value) : value));
    pod.append(card);
  }
  const words = $("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  $("tree").replaceChildren(branch(last, null, words, $("busy").checked));
}

async function poll() {
  if (!paused && !document.hidden) {
    try {
      const answer = await fetch("/debug/tree", { headers: headers() });
      $("keyform").hidden = answer.status !== 401;
      if (answer.status === 401) status("this pod asks for its debug key", true);
      else if (!answer.ok) status("the pod answered " + answer.status, true);
      else {
        last = await answer.json();
        draw();
        status("live");
      }
    } catch {
      status("the pod does not answer", true);
    }
  }
  setTimeout(poll, 1500);
}

function told(name, event) {
  const item = el("li", event.crashed || event.abandoned ? "bad" : "");
  const when = new Date(event.at).toLocaleTimeString() + "  " + event.path + " (gen " + event.gen + ") ";
  if (name === "start") item.textContent = when + "started" + (event.follows ? ", after gen " + event.follows : "");
  else item.textContent = when +
    (event.abandoned ? "abandoned" : event.crashed ? "crashed" : "ended") + " after " + span(event.lived_ms) + ": " + event.cause +
    (event.next ? ", gen " + event.next + " follows in " + span(event.delay_ms || 0) : "");
  $("events").prepend(item);
  while ($("events").childNodes.length > 200) $("events").lastChild.remove();
}

// EventSource cannot send a key, so the stream is read by hand.
async function listen() {
  try {
    const answer = await fetch("/debug/events", { headers: { ...headers(), "Last-Event-ID": String(seen) } });
    if (answer.ok) {
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = ""; ;) {
        const { value, done } = await reader.read();
        if (done) break;
        text += value;
        const parts = text.split("\n\n");
        text = parts.pop();
        for (const part of parts) {
          const data = part.split("\n").find((l) => l.startsWith("data: "));
          const name = part.split("\n").find((l) => l === "event: exit" || l === "event: start");
          if (!data || !name) continue;
          const event = JSON.parse(data.slice(6));
          seen = event.id;
          told(name.slice(7), event);
        }
      }
    }
  } catch { /* the pod is away; poll says so */ }
  setTimeout(listen, 2000);
}

$("find").addEventListener("input", draw);
$("busy").addEventListener("change", draw);
$("pause").addEventListener("click", () => {
  paused = !paused;
  $("pause").setAttribute("aria-pressed", String(paused));
  $("pause").textContent = paused ? "go on" : "pause";
  if (paused) status("paused");
});
$("keyform").addEventListener("submit", (e) => {
  e.preventDefault();
  key = $("key").value;
});
poll();
listen();
