// The playground: a client that cannot listen. It talks to an agent through one socket and serves the room's tools back
// through the same one.
import * as chat from './chat.js';
import {log} from './frames.js';
import {furnish, tools} from './room.js';
import {Server} from './server.js';
import {failure, Socket} from './socket.js';

const lines = [
  '/call katashiro.click {"selector":"#bump"}',
  '/search button',
  '/call katashiro.read_dom',
  '/call katashiro.type {"selector":"#note","text":"hello from the agent"}',
  '/call katashiro.screenshot',
  '/ask',
  '/sleep 5s',
];
const reconnectMin = 500, reconnectMax = 8000; // milliseconds

const state = document.getElementById('state');
const send = document.getElementById('send');
const cancel = document.getElementById('cancel');
const prompt = document.getElementById('prompt');
const server = new Server('katashiro', tools);
const questions = new Map(); // by the id of the pod's request

// A secret of this tab: with it, this tab and nobody else finds its session again.
const secret = kept('acpod.client', () => [...crypto.getRandomValues(new Uint8Array(24))].map((byte) => byte.toString(16).padStart(2, '0')).join(''));
let session = sessionStorage.getItem('acpod.session');
let key = sessionStorage.getItem('acpod.key') ?? '';
let wait = reconnectMin;
let running = false;
let suspended = false; // the next line starts the session again

function kept(name, make) {
  let value = sessionStorage.getItem(name);
  if (!value) sessionStorage.setItem(name, value = make());
  return value;
}

function tell(name, words = '') {
  state.dataset.state = name;
  state.querySelector('b').textContent = name;
  state.querySelector('span').textContent = words;
}

function busy(on) {
  running = on;
  cancel.disabled = !on;
  send.disabled = on || state.dataset.state !== 'connected';
}

const socket = new Socket({
  async opened() {
    wait = reconnectMin;
    try {
      const hello = await socket.request('initialize', {
        protocolVersion: 1,
        clientInfo: {name: 'acpod-playground', title: 'acpod playground', version: '1'},
        clientCapabilities: {},
        _meta: {'acpod.dev/client': secret},
      });
      await attach();
      tell('connected', `to ${hello.agentInfo?.name ?? 'a pod'}, session ${session.slice(5, 13)}`);
      busy(running);
    } catch (error) {
      if (!socket.isOpen) return; // closed() has said what is to be said
      tell('refused', error.message);
      chat.bad(error.message);
    }
  },
  async closed(code, reason) {
    server.reset();
    for (const question of questions.values()) question.takeBack();
    busy(false);
    send.disabled = true;
    if (code === 4401) {
      tell('refused', 'the key is wrong');
      askForKey('That key was not accepted.');
      return;
    }
    if (!key && await asksForKey()) { // a pod that came back with a key refuses before there is a socket that could say so
      tell('refused', 'a key is needed');
      askForKey();
      return;
    }
    tell('lost', `${reason || `closed with ${code}`}; trying again in ${Math.round(wait / 1000) || 1} s`);
    setTimeout(() => { tell('connecting'); socket.connect(key); }, wait);
    wait = Math.min(wait * 2, reconnectMax);
  },
  async request(method, params, id) {
    if (method.startsWith('mcp/')) return server.handle(method, params);
    if (method === 'session/request_permission') return permission(params, id);
    throw failure(-32601, `unknown method ${method}`);
  },
  notified(method, params) {
    if (method === 'session/update' && params.sessionId === session) update(params.update ?? {});
    if (method === '_acpod/turn_ended' && params.sessionId === session) {
      chat.note(`The turn ended: ${params.stopReason ?? params.error?.message ?? 'with an error'}`);
      busy(false);
    }
    if (method === '_acpod/suspended' && params.sessionId === session) {
      suspended = true;
      server.reset();
      chat.note(`The session was suspended: ${params.reason}. Your next line starts it again.`);
    }
    if (method === '_acpod/agent' && params.sessionId === session) chat.note('Another agent process took over. It remembers nothing of this conversation.');
    if (method === '$/cancel_request') questions.get(params.requestId)?.takeBack();
    if (method === '_acpod/draining') chat.note('The pod is about to stop.');
    if (method === '_acpod/servers' && params.sessionId === session) attached(params);
  },
}, log);

function attached({servers = [], facade = {}}) {
  const mine = servers.find(({name}) => name === 'katashiro');
  if (mine?.state === 'ready') chat.note(`The agent sees ${mine.tools?.offered ?? 0} tools of this page.`);
  if (mine && ['refused', 'failed'].includes(mine.state)) chat.bad(`This page's tools are ${mine.state}: ${mine.reason ?? 'no reason given'}`);
  if (facade.state && facade.state !== 'ready') chat.bad(`The agent has no tools: ${facade.reason ?? facade.state}`);
}

// attach resumes the session of this tab, or opens one.
async function attach() {
  suspended = false;
  const declared = {cwd: '/', mcpServers: [server.declaration]};
  if (session) {
    try {
      const found = await socket.request('session/resume', {sessionId: session, ...declared});
      busy(found._meta?.['acpod.dev/session']?.state === 'running');
      chat.note('Back in the same session.');
      return;
    } catch (error) {
      if (error.code !== -32602) throw error;
      chat.note('The former session is gone; this is a new one.');
    }
  }
  const opened = await socket.request('session/new', declared);
  session = opened.sessionId;
  sessionStorage.setItem('acpod.session', session);
}

function update({sessionUpdate, content, title, status, toolCallId}) {
  switch (sessionUpdate) {
    case 'agent_message_chunk':
      chat.stream(content?.type === 'text' ? content.text : `[${content?.type}]`);
      break;
    case 'tool_call':
      chat.note(`▸ ${title ?? toolCallId}`);
      break;
    case 'tool_call_update':
      if (status) chat.note(`▸ ${toolCallId}: ${status}`);
      break;
  }
}

async function permission({toolCall, options = []}, id) {
  const question = chat.ask(`${toolCall?.title ?? 'The agent'} — may it?`, options);
  questions.set(id, question);
  const chosen = await question.answer;
  questions.delete(id);
  return {outcome: chosen ? {outcome: 'selected', optionId: chosen.optionId} : {outcome: 'cancelled'}};
}

async function say(words) {
  chat.mine(words);
  busy(true);
  try {
    if (suspended) await attach();
    const {stopReason} = await socket.request('session/prompt', {sessionId: session, prompt: [{type: 'text', text: words}]});
    if (stopReason !== 'end_turn') chat.note(`The turn ended: ${stopReason}`);
  } catch (error) {
    chat.bad(error.message);
  }
  busy(false);
}

// asksForKey asks the pod, which may be away.
async function asksForKey() {
  try { return (await (await fetch('/playground/config.json', {signal: AbortSignal.timeout(3000)})).json()).key === true; } catch { return false; }
}

function askForKey(hint = '') {
  document.getElementById('key-form').hidden = false;
  document.getElementById('key-hint').textContent = hint;
  document.getElementById('key').focus();
}

document.getElementById('key-form').addEventListener('submit', (event) => {
  event.preventDefault();
  key = document.getElementById('key').value.trim();
  if (!/^[A-Za-z0-9!#$%&'*+\-.^_`|~]+$/.test(key)) {
    askForKey('A key for browsers has only letters, digits and !#$%&\'*+-.^_`|~.');
    return;
  }
  sessionStorage.setItem('acpod.key', key);
  document.getElementById('key-form').hidden = true;
  tell('connecting');
  socket.connect(key);
});
document.getElementById('prompt-form').addEventListener('submit', (event) => {
  event.preventDefault();
  const words = prompt.value.trim();
  if (words && !send.disabled) say(words);
});
prompt.addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && !event.shiftKey) { event.preventDefault(); prompt.form.requestSubmit(); }
});
cancel.addEventListener('click', () => {
  for (const question of questions.values()) question.takeBack();
  socket.notify('session/cancel', {sessionId: session});
});
for (const line of lines) {
  const chip = document.createElement('button');
  chip.type = 'button';
  chip.textContent = line;
  chip.addEventListener('click', () => { prompt.value = line; prompt.focus(); });
  document.getElementById('chips').append(chip);
}

furnish();
prompt.value = lines[0];
if (!key && await asksForKey()) {
  tell('refused', 'a key is needed');
  askForKey();
} else {
  socket.connect(key);
}
