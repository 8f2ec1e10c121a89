// The live log of frames, newest first, bounded.

const list = document.getElementById('frame-list');
const count = document.getElementById('frame-count');
const limit = 200, shown = 4000; // frames kept, characters of one shown
let total = 0;

function kind(frame) {
  if (frame.method !== undefined) return frame.params?.method ? `${frame.method} · ${frame.params.method}` : frame.method;
  return frame.error ? `error ${frame.error.code}` : 'result';
}

export function log(direction, frame, text) {
  total++;
  count.textContent = String(total);
  const item = document.createElement('li');
  item.className = direction;
  const details = document.createElement('details'), summary = document.createElement('summary');
  const name = document.createElement('b'), size = document.createElement('span');
  name.textContent = frame.id === undefined ? kind(frame) : `${kind(frame)} #${frame.id}`;
  size.textContent = `${text.length} B`;
  summary.append(name, size);
  const body = document.createElement('pre');
  body.textContent = text.length > shown ? `${text.slice(0, shown)} … +${text.length - shown} characters` : text;
  details.append(summary, body);
  item.append(details);
  list.prepend(item);
  while (list.children.length > limit) list.lastChild.remove();
}
