// Every frame that the pod sends, against the ACP schema that ships with the SDK (its unstable one), and against schemas of
// our own for the methods that it does not know.
import Ajv2020 from 'ajv/dist/2020.js';
import assert from 'node:assert/strict';
import {readdir, readFile} from 'node:fs/promises';
import {after, before, test} from 'node:test';
import {fileURLToPath} from 'node:url';
import {config, RawClient, startPod, until} from './pod.mjs';

const acpSchema = JSON.parse(await readFile(fileURLToPath(import.meta.resolve('@agentclientprotocol/sdk/schema/v1/schema.unstable.json')), 'utf8'));
const ajv = new Ajv2020({strict: false, allErrors: true, validateFormats: false});
ajv.addSchema({...acpSchema, $id: 'acp'});

// Definitions of the ACP schema by method, what a side sends as a request or notification and what it answers.
const sent = new Map(), answered = new Map();
for (const [name, definition] of Object.entries(acpSchema.$defs)) {
  if (!definition['x-method']) continue;
  const validate = ajv.compile({$ref: `acp#/$defs/${name}`});
  (name.endsWith('Response') ? answered : sent).set(definition['x-method'], validate);
}

// Our own, "mcp.connect.params.json" for mcp/connect, and the errors and _meta that the pod adds.
const folder = new URL('../schema/', import.meta.url);
const own = new Map();
for (const file of await readdir(folder)) own.set(file.replace(/\.json$/, ''), ajv.compile(JSON.parse(await readFile(new URL(file, folder), 'utf8'))));
const ours = (method) => own.get(`${method.replaceAll('/', '.')}.params`) ?? own.get(method.replaceAll('/', '.'));

let pod;
before(async () => { pod = await startPod(); });
after(() => pod.stop());

// check gives the number of frames judged by each side, and fails on the first that does not fit.
function check(client) {
  const judged = {acp: 0, own: 0};
  for (const frame of client.frames) {
    assert.equal(frame.jsonrpc, '2.0');
    let validate, value, by = 'acp';
    if (frame.method === undefined) {
      [validate, value] = [answered.get(client.asked.get(frame.id)), frame.result];
      if (frame.error) [validate, value, by] = [own.get('error'), frame.error, 'own'];
      for (const [key, name] of [['acpod.dev/servers', 'meta.servers'], ['acpod.dev/session', 'meta.session']]) {
        const meta = frame.result?._meta?.[key];
        if (meta) assert.ok(own.get(name)(meta), `${JSON.stringify(meta)}: ${ajv.errorsText(own.get(name).errors)}`);
      }
    } else {
      // mcp/message is the SDK's own only in generation C; the older ones carry a connection id.
      const old = frame.method === 'mcp/message' && client.generation !== 'C';
      validate = old ? undefined : sent.get(frame.method);
      value = frame.params;
      if (!validate) [validate, by] = [ours(frame.method), 'own'];
      if (frame.method === '_acpod/keepalive') value = frame;
    }
    assert.ok(validate, `no schema knows ${JSON.stringify(frame).slice(0, 300)}`);
    assert.ok(validate(value), `${JSON.stringify(frame).slice(0, 600)}: ${ajv.errorsText(validate.errors)}`);
    judged[by]++;
  }
  return judged;
}

for (const generation of ['A', 'B', 'C', '0']) {
  test(`every frame to a client of generation ${generation} fits its schema`, async () => {
    const client = await RawClient.connect(pod, generation);
    const hello = {protocolVersion: 1, _meta: {'acpod.dev/client': `a secret for ${generation}, long enough`}};
    await client.request('initialize', hello);
    const {sessionId} = await client.request('session/new', {cwd: '/', mcpServers: [client.declaration]});
    await until('a ready server', () => client.frames.some((f) => JSON.stringify(f).includes('"state":"ready"')));
    const prompt = (text) => client.request('session/prompt', {sessionId, prompt: [{type: 'text', text}]});
    await prompt('hello\n/search click\n/call katashiro.click {"a":1}\n/ask');
    const turn = prompt('/call katashiro.click {"hold":true}');
    await until('the held call', () => client.frames.some(({params}) => params?.params?.arguments?.hold));
    client.notify('session/cancel', {sessionId});
    await turn;
    await client.request('session/list', {});
    await client.request('session/resume', {sessionId, cwd: '/', mcpServers: []});
    await client.request('session/close', {sessionId});
    await assert.rejects(client.request('no/such', {}));
    const judged = check(client);
    assert.ok(judged.acp > 8, JSON.stringify(judged));
    assert.ok(judged.own > (generation === 'C' ? 0 : 4), JSON.stringify(judged));
    client.close();
  });
}

test('the notifications of the pod\'s own fit our schemas', async () => {
  const small = await startPod(config.replace('[acp]\n', '[acp]\nkeepalive = "300ms"\n') + '[agent]\nmax_sessions = 1\n[pod]\ndrain_timeout = "2s"\n');
  const clients = [];
  const enter = async () => {
    const client = await RawClient.connect(small, 'A');
    clients.push(client);
    await client.request('initialize', {protocolVersion: 1, _meta: {'acpod.dev/client': 'a secret of two tabs, long enough'}});
    return client;
  };
  const told = (client, method) => until(method, () => client.frames.some((frame) => frame.method === method));
  const prompt = (client, sessionId, text) => client.request('session/prompt', {sessionId, prompt: [{type: 'text', text}]});
  const open = {cwd: '/', mcpServers: []};

  const first = await enter();
  await told(first, '_acpod/keepalive');
  const {sessionId} = await first.request('session/new', {...open, mcpServers: [first.declaration]});
  await until('a ready server', () => first.frames.some((f) => JSON.stringify(f).includes('"state":"ready"')));
  await assert.rejects(prompt(first, sessionId, '/crash'), ({code}) => code === -32603);
  await prompt(first, sessionId, 'with another agent');
  await told(first, '_acpod/agent');

  const second = await enter(), turn = prompt(first, sessionId, '/sleep 1s');
  await until('the turn', () => first.asked.size > 4);
  await Promise.all([assert.rejects(turn, ({code}) => code === -32001), second.request('session/resume', {...open, sessionId})]);
  await told(second, '_acpod/turn_ended');

  await first.request('session/new', open); // in the one place that there is
  await told(second, '_acpod/suspended');
  await small.stop();
  await told(first, '_acpod/draining');
  for (const client of clients) check(client);
});
