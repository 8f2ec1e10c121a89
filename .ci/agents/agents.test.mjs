// Each agent behind the built pod, through all that a session goes through. AGENT names one of agents.mjs, DELIVERIES the
// deliveries to try, the first of them with everything.
import assert from 'node:assert/strict';
import {appendFile, readFile} from 'node:fs/promises';
import {join} from 'node:path';
import {after, before, test} from 'node:test';
import {agents} from './agents.mjs';
import {allow, Extension, reject} from './extension.mjs';
import {Model} from './model.mjs';
import {Cable, Pod, until} from './pod.mjs';
import {alive, below, commandLines, tokenOf} from './processes.mjs';

const agent = agents[process.env.AGENT];
const [delivery, ...others] = (process.env.DELIVERIES ?? 'auto').split(',');
const secret = 'a-secret-of-the-test-client';
const result = join(process.env.ARTIFACTS, 'agents.jsonl');
let model, pod;

// row is a test whose outcome is a cell of the table.
const row = (what, run) => test(`${agent.name}: ${what}`, async () => {
  const began = Date.now();
  let note = '', ok = false;
  try {
    note = await run() ?? '';
    ok = true;
  } catch (error) {
    note = error.message.split('\n')[0];
    throw error;
  } finally {
    await appendFile(result, `${JSON.stringify({agent: agent.name, delivery, what, ok, note, seconds: Math.round((Date.now() - began) / 100) / 10})}\n`);
  }
});

before(async () => {
  model = await Model.start();
  pod = await Pod.make(agent, model, delivery);
  await pod.start();
});
after(async () => {
  await pod.stop().catch(() => pod.kill());
  await model.stop();
  if (process.env.KEEP) console.log(pod.home, pod.log);
  else await pod.remove();
});

const facadeOf = ({_meta}) => _meta['acpod.dev/servers'].facade;

// used runs the turn in which the tool is found and used, and gives what was said.
async function used(extension, sessionId, play = 'play: tools') {
  const from = extension.frames.length;
  const {stopReason} = await extension.prompt(sessionId, play);
  assert.equal(stopReason, 'end_turn');
  return extension.said(sessionId, from);
}

// noTokenShown looks at every process while a tool runs: the token is in an environment and in no command line.
async function noTokenShown(root) {
  const processes = await below(root);
  const tokens = new Set([...processes.values()].map(({environ}) => tokenOf(environ)).filter(Boolean));
  assert.equal(tokens.size, 1, `${tokens.size} tokens in the environments of ${processes.size} processes`);
  const [token] = tokens;
  assert.deepEqual(await commandLines(token), []);
  return processes.size;
}

async function toolRow(on, delivery) {
  const extension = await Extension.connect(on.public, secret);
  extension.choose = allow;
  let shown;
  extension.during = async () => { shown = await noTokenShown(on.pid).catch((error) => error); };
  const opened = await extension.open();
  const {state, delivery: chosen} = facadeOf(opened);
  assert.deepEqual([state, chosen], ['ready', delivery === 'auto' ? 'acp' : delivery], JSON.stringify(facadeOf(opened)));
  const said = await used(extension, opened.sessionId);
  assert.deepEqual(extension.calls, [{selector: '#go'}], `said: ${said}`);
  assert.match(said, /clicked #go/);
  if (shown instanceof Error) throw shown;
  await extension.request('session/close', {sessionId: opened.sessionId});
  extension.close();
  return `${chosen}, no token in the command lines of ${shown} processes`;
}

row('finds a tool, uses it, streams back', () => toolRow(pod, delivery));

row('permission: rejected, then allowed', async () => {
  const extension = await Extension.connect(pod.public, secret);
  const {sessionId} = await extension.open();
  extension.choose = reject;
  const no = await extension.prompt(sessionId, 'play: click');
  assert.ok(extension.asked.length > 0, 'nothing was asked');
  assert.deepEqual(extension.calls, []);
  extension.choose = allow;
  assert.match(await used(extension, sessionId, 'play: click'), /clicked #again/);
  assert.deepEqual(extension.calls, [{selector: '#again'}]);
  const kinds = extension.asked.at(-1).options.map(({kind}) => kind).join(', ');
  await extension.request('session/close', {sessionId});
  extension.close();
  return `${no.stopReason} after the rejection; options: ${kinds}`;
});

row('cancel in mid-turn', async () => {
  const extension = await Extension.connect(pod.public, secret);
  const {sessionId} = await extension.open();
  const turn = extension.prompt(sessionId, 'play: hold cancelled');
  await until('the first words', () => extension.said(sessionId).includes('Before.'));
  const began = Date.now();
  extension.notify('session/cancel', {sessionId});
  assert.equal((await turn).stopReason, 'cancelled');
  const took = Date.now() - began;
  assert.match(await used(extension, sessionId, 'play: say onwards'), /onwards/);
  await extension.request('session/close', {sessionId});
  extension.close();
  return `answered after ${took} ms`;
});

row('cancel while a permission is open', async () => {
  const extension = await Extension.connect(pod.public, secret);
  const {sessionId} = await extension.open();
  const turn = extension.prompt(sessionId, 'play: click');
  await extension.seen('the question', ({method}) => method === 'session/request_permission');
  extension.notify('session/cancel', {sessionId});
  assert.equal((await turn).stopReason, 'cancelled');
  assert.deepEqual(extension.calls, []);
  assert.match(await used(extension, sessionId, 'play: say onwards'), /onwards/);
  await extension.request('session/close', {sessionId});
  extension.close();
});

row('cancel in the frame after the prompt', async () => {
  const extension = await Extension.connect(pod.public, secret);
  const {sessionId} = await extension.open();
  const turn = extension.prompt(sessionId, 'play: hold at-once');
  extension.notify('session/cancel', {sessionId});
  assert.equal((await turn).stopReason, 'cancelled');
  assert.match(await used(extension, sessionId, 'play: say onwards'), /onwards/);
  await extension.request('session/close', {sessionId});
  extension.close();
});

row('the socket is cut in mid-turn, and the answer comes', async () => {
  const cable = await Cable.lay(pod.public);
  const first = await Extension.connect(cable.address, secret);
  const {sessionId} = await first.open();
  first.prompt(sessionId, 'play: hold cut').catch(() => {});
  await until('the first words', () => first.said(sessionId).includes('Before.'));
  cable.cut();
  const extension = await Extension.connect(pod.public, secret);
  extension.choose = allow;
  const resumed = (await extension.again('session/resume', sessionId))._meta['acpod.dev/session'];
  assert.deepEqual([resumed.state, resumed.agent, resumed.missed_updates], ['running', 'alive', 0], JSON.stringify(resumed));
  model.release('cut');
  const ended = await extension.seen('the end of the turn', ({method}) => method === '_acpod/turn_ended');
  assert.equal(ended.params.stopReason, 'end_turn');
  assert.match(extension.said(sessionId), /After\.$/);
  assert.match(await used(extension, sessionId), /clicked #go/);
  await extension.request('session/close', {sessionId});
  extension.close();
});

row('the turn ends while nobody is there, and the answer is kept', async () => {
  const cable = await Cable.lay(pod.public);
  const first = await Extension.connect(cable.address, secret);
  const {sessionId} = await first.open();
  first.prompt(sessionId, 'play: hold alone').catch(() => {});
  await until('the first words', () => first.said(sessionId).includes('Before.'));
  cable.cut();
  await until('the pod to notice', async () => (await pod.tree()).pod.connections === 0);
  model.release('alone');
  await until('the turn to end', async () => {
    const [one, ...more] = await pod.sessions();
    return more.length === 0 && one.attrs.turn === 'idle';
  });
  const extension = await Extension.connect(pod.public, secret);
  const {_meta} = await extension.again('session/resume', sessionId);
  await until('what was kept', () => extension.said(sessionId).includes('After.'));
  assert.deepEqual(_meta['acpod.dev/session'].last_turn, {stopReason: 'end_turn'});
  await extension.request('session/close', {sessionId});
  extension.close();
});

row('the socket is cut while a permission is open, and it is asked again', async () => {
  const cable = await Cable.lay(pod.public);
  const first = await Extension.connect(cable.address, secret);
  const {sessionId} = await first.open();
  first.prompt(sessionId, 'play: click').catch(() => {});
  await first.seen('the question', ({method}) => method === 'session/request_permission');
  cable.cut();
  const extension = await Extension.connect(pod.public, secret);
  extension.choose = allow;
  await extension.again('session/resume', sessionId);
  const ended = await extension.seen('the end of the turn', ({method}) => method === '_acpod/turn_ended');
  assert.equal(ended.params.stopReason, 'end_turn');
  assert.deepEqual(extension.calls, [{selector: '#again'}]);
  assert.match(extension.said(sessionId), /clicked #again/);
  await extension.request('session/close', {sessionId});
  extension.close();
});

// restarted puts a restart of the pod between what was said and what is remembered.
async function restarted(method) {
  const first = await Extension.connect(pod.public, secret);
  first.choose = allow;
  const {sessionId} = await first.open();
  const marker = `marker-${method.replace('session/', '')}`;
  await used(first, sessionId, `play: say ${marker}`);
  first.close();
  await agent.settle?.();
  await pod.stop();
  await pod.start();
  const extension = await until('what the agent offers', async () => { // a pod that has just started does not know it yet
    const one = await Extension.connect(pod.public, secret);
    if (one.hello.agentCapabilities.loadSession || method !== 'session/load') return one;
    one.close();
  });
  extension.choose = allow;
  const answer = await extension.again(method, sessionId);
  const {agent: how} = answer?._meta?.['acpod.dev/session'] ?? {};
  const replayed = extension.frames.filter((frame) => frame.method === 'session/update' && JSON.stringify(frame).includes(marker)).length;
  const asked = model.turns.length;
  assert.match(await used(extension, sessionId), /clicked #go/);
  const remembers = model.turns[asked].history.includes(marker);
  await extension.request('session/close', {sessionId});
  extension.close();
  return {how, replayed, remembers};
}

row('the pod is restarted: session/load', async () => {
  const {replayed, remembers} = await restarted('session/load');
  assert.ok(remembers, 'the conversation is gone');
  assert.ok(replayed > 0, 'nothing was replayed');
  return `${replayed} updates with the marker were replayed`;
});

row('the pod is restarted: session/resume', async () => {
  const {how, replayed, remembers} = await restarted('session/resume');
  assert.equal(how, 'restored');
  assert.ok(remembers, 'the conversation is gone');
  assert.equal(replayed, 0, 'a resume was replayed');
});

row('the pod is restarted, and the agent does not know the conversation', async () => {
  const first = await Extension.connect(pod.public, secret);
  const {sessionId} = await first.open();
  await used(first, sessionId, 'play: say something');
  first.close();
  await pod.stop();
  await pod.forget(sessionId);
  await pod.start();
  const extension = await Extension.connect(pod.public, secret);
  extension.choose = allow;
  const resumed = await extension.again('session/resume', sessionId).catch((error) => error);
  if (agent.forgets === 'an error') {
    assert.equal(resumed.code, -32603, JSON.stringify(resumed));
    extension.close();
    return `${resumed.code} ${resumed.message}`;
  }
  assert.equal(resumed._meta?.['acpod.dev/session'].agent, 'fresh', resumed.message);
  assert.match(await used(extension, sessionId), /clicked #go/);
  await extension.request('session/close', {sessionId});
  extension.close();
  return 'fresh';
});

row('the pod goes, and nothing of it is left', async () => {
  const extension = await Extension.connect(pod.public, secret);
  const {sessionId} = await extension.open();
  await used(extension, sessionId, 'play: say something');
  await until('the agents of former rows to end', async () => (await pod.tree()).pod.agents === 1);
  const held = extension.prompt(sessionId, 'play: hold stop').catch((error) => error);
  await until('the first words', () => extension.said(sessionId).includes('Before.'));
  const processes = [...(await below(pod.pid)).keys()];
  assert.ok(processes.length > 0);
  const closing = Date.now();
  await extension.request('session/close', {sessionId});
  await held;
  const guardian = processes.length;
  await until('the agent to end', async () => (await below(pod.pid)).size <= 1);
  const took = Date.now() - closing;
  extension.close();
  await pod.stop();
  assert.deepEqual(await alive(processes), []);
  await pod.start();
  return `${guardian} processes, gone after ${took} ms`;
});

for (const other of others) {
  row(`delivery ${other}: finds a tool, uses it`, async () => {
    const another = await Pod.make(agent, model, other);
    try {
      await another.start();
      const note = await toolRow(another, other);
      await another.stop();
      return note;
    } catch (error) {
      another.kill();
      throw error;
    } finally {
      if (process.env.KEEP) console.log(another.home, another.log);
      else await another.remove();
    }
  });
}
