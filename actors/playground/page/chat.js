// The conversation as a person sees it. Whatever comes from a peer enters the page as text.

const messages = document.getElementById('messages');
const limit = 400, longest = 20_000; // messages kept, characters of one
let streaming = null, length = 0;

function add(kind, words) {
  const element = document.createElement('div');
  element.className = `message ${kind}`;
  element.textContent = words;
  messages.append(element);
  while (messages.children.length > limit) messages.firstChild.remove();
  messages.scrollTop = messages.scrollHeight;
  return element;
}

export function mine(words) { streaming = null; add('mine', words); }
export function note(words) { streaming = null; add('note', words); }
export function bad(words) { streaming = null; add('bad', words); }

// stream appends to the agent's current message. A message that grows too long is followed by another, so that an agent that never
// stops talking does not fill the page: the oldest go.
export function stream(words) {
  words = String(words);
  if (words.length > longest) words = `${words.slice(0, longest)} … +${words.length - longest} characters`;
  if (!streaming || length > longest) {
    streaming = add('agent', '');
    length = 0;
  }
  length += words.length;
  streaming.append(words);
  messages.scrollTop = messages.scrollHeight;
}

// ask shows the options of a permission request and resolves with the one chosen, or null when taken back.
export function ask(title, options) {
  streaming = null;
  const element = add('ask', title);
  element.append(document.createElement('br'));
  let settle;
  const answer = new Promise((resolve) => { settle = resolve; });
  for (const option of options) {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = `choice ${String(option.kind).startsWith('reject') ? 'reject' : 'allow'}`;
    button.textContent = option.name;
    button.addEventListener('click', () => settle(option));
    element.append(button);
  }
  const done = answer.then((option) => {
    for (const button of element.querySelectorAll('button')) button.disabled = true;
    note(option ? `You chose: ${option.name}` : 'The question was taken back.');
    return option;
  });
  return {answer: done, takeBack: () => settle(null)};
}
