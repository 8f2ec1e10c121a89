// The room: a few elements of this page, and the five tools that act on them and on nothing else.

const stage = document.getElementById('stage');
const touched = document.getElementById('touched');
const places = ['counter', 'form', 'list'];

export function furnish() {
  const count = document.getElementById('count');
  document.getElementById('bump').addEventListener('click', () => { count.value = String(Number(count.value) + 1); });
  const note = document.getElementById('note');
  const add = () => {
    if (note.value.trim() === '') return;
    const item = document.createElement('li');
    item.textContent = note.value.trim();
    document.getElementById('items').append(item);
    note.value = '';
  };
  document.getElementById('add').addEventListener('click', add);
  note.addEventListener('keydown', (event) => { if (event.key === 'Enter') add(); });
}

const text = (words) => ({content: [{type: 'text', text: words}]});

// One element of the room, or an error that says what the room has.
function find(selector) {
  let element = null;
  try { element = stage.querySelector(selector); } catch { throw new Error(`${selector} is not a CSS selector`); }
  if (!element) throw new Error(`nothing in the room matches ${selector}; it has #bump, #note, #add and #items`);
  return element;
}

function show(element, words) {
  touched.textContent = words;
  element.scrollIntoView({block: 'nearest'});
  element.classList.add('touched');
  setTimeout(() => element.classList.remove('touched'), 900);
}

// What a reader of the room sees: one line an element, with the selector that reaches it.
function outline(element, depth = 0) {
  const lines = [];
  for (const child of element.children) {
    const name = child.id ? `#${child.id}` : child.tagName.toLowerCase();
    const own = [...child.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.textContent.trim()).join(' ').trim();
    const value = child.value !== undefined && child.tagName !== 'LI' ? ` value="${child.value}"` : '';
    lines.push(`${'  '.repeat(depth)}${name}${own ? ` "${own}"` : ''}${value}`, ...outline(child, depth + 1));
  }
  return lines;
}

// A drawing of the room from its boxes and words, since a page cannot photograph itself.
function draw() {
  const frame = stage.getBoundingClientRect();
  const canvas = document.createElement('canvas');
  canvas.width = Math.max(1, Math.ceil(frame.width));
  canvas.height = Math.max(1, Math.ceil(frame.height));
  const pen = canvas.getContext('2d');
  pen.fillStyle = getComputedStyle(document.body).backgroundColor;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  for (const element of stage.querySelectorAll('*')) {
    const style = getComputedStyle(element), box = element.getBoundingClientRect();
    const [x, y] = [box.left - frame.left, box.top - frame.top];
    if (['ARTICLE', 'BUTTON', 'INPUT'].includes(element.tagName)) {
      pen.fillStyle = style.backgroundColor;
      pen.fillRect(x, y, box.width, box.height);
      pen.strokeStyle = style.borderTopColor;
      pen.strokeRect(x, y, box.width, box.height);
    }
    const words = element.children.length === 0 ? (element.value || element.textContent || '').trim() : '';
    if (words) {
      pen.fillStyle = style.color;
      pen.font = `${style.fontWeight} ${style.fontSize} sans-serif`;
      pen.textBaseline = 'middle';
      pen.fillText(words, x + parseFloat(style.paddingLeft), y + box.height / 2, box.width);
    }
  }
  return canvas.toDataURL('image/jpeg', 0.7);
}

const selector = {type: 'string', description: 'a CSS selector inside the room, e.g. #bump'};

export const tools = [
  {
    name: 'read_dom', description: 'Read what is in the room: its elements, their texts, values and selectors.',
    inputSchema: {type: 'object', properties: {selector}, additionalProperties: false},
    annotations: {readOnlyHint: true},
    run({selector}) {
      const root = selector ? find(selector) : stage;
      show(root, 'The agent read the room.');
      const own = root.children.length === 0 ? [root.value || root.textContent.trim()] : outline(root);
      return text(own.join('\n'));
    },
  },
  {
    name: 'screenshot', description: 'A picture of the room as JPEG.',
    inputSchema: {type: 'object', properties: {}, additionalProperties: false},
    annotations: {readOnlyHint: true},
    run() {
      const data = draw();
      show(stage, 'The agent took a picture of the room.');
      return {content: [{type: 'image', mimeType: 'image/jpeg', data: data.slice(data.indexOf(',') + 1)}]};
    },
  },
  {
    name: 'navigate', description: 'Go to a place of the room: #counter, #form or #list.',
    inputSchema: {type: 'object', properties: {url: {type: 'string', description: '#counter, #form or #list'}}, required: ['url'], additionalProperties: false},
    run({url}) {
      const place = url.replace(/^.*#/, '');
      if (!places.includes(place)) throw new Error(`this room has only ${places.map((name) => `#${name}`).join(', ')}`);
      for (const article of stage.children) article.classList.toggle('here', article.id === place);
      show(find(`#${place}`), `The agent went to #${place}.`);
      return text(`now at #${place}`);
    },
  },
  {
    name: 'click', description: 'Click an element of the room.',
    inputSchema: {type: 'object', properties: {selector}, required: ['selector'], additionalProperties: false},
    run({selector}) {
      const element = find(selector);
      element.click();
      show(element, `The agent clicked ${selector}.`);
      return text(`clicked ${selector}`);
    },
  },
  {
    name: 'type', description: 'Type text into a field of the room, in place of what it holds.',
    inputSchema: {type: 'object', properties: {selector, text: {type: 'string'}}, required: ['selector', 'text'], additionalProperties: false},
    run({selector, text: words}) {
      const element = find(selector);
      if (!('value' in element) || element.tagName === 'BUTTON') throw new Error(`${selector} is not a field`);
      element.value = words;
      element.dispatchEvent(new Event('input', {bubbles: true}));
      show(element, `The agent typed into ${selector}.`);
      return text(`typed ${words.length} characters into ${selector}`);
    },
  },
];
