// The TypeScript ACP SDK as a client of client-check, which plays the pod: a client that is not ours and is sound has to pass.
import * as acp from '@agentclientprotocol/sdk/unstable';
import {createWebSocketStream} from '@agentclientprotocol/sdk/experimental/ws-client';
import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import {test} from 'node:test';
import {setTimeout as pause} from 'node:timers/promises';
import WebSocket from 'ws';

const tool = {name: 'katashiro.read_dom', annotations: {readOnlyHint: true}, inputSchema: {type: 'object', properties: {selector: {type: 'string'}}, required: ['selector']}};

function handler({method, params}) {
  if (method === 'tools/list') return {result: {resultType: 'complete', tools: [tool]}};
  if (method !== 'tools/call') return {error: {code: -32601, message: `no ${method}`}};
  if (params.name !== tool.name || typeof params.arguments?.selector !== 'string') return {error: {code: -32602, message: 'no such call'}};
  return {result: {resultType: 'complete', content: [{type: 'text', text: 'read'}]}};
}

// life is one socket of the client; mine has the session that it opened.
async function life(url, mine) {
  const provider = new acp.McpOverAcpProvider();
  const connection = acp.client({name: 'acpod-interop'})
    .onRequest(acp.methods.client.mcp.message, provider.handleRequest)
    .onRequest(acp.methods.client.session.requestPermission, () => ({outcome: {outcome: 'cancelled'}}))
    .onNotification(acp.methods.client.session.update, () => {})
    .connect(createWebSocketStream(url, {WebSocket, protocols: ['acp.v1']}));
  const {agent} = connection;
  const {declaration} = provider.registerServer(agent, {name: 'katashiro', handler});
  await agent.request(acp.methods.agent.initialize, {protocolVersion: 1, clientCapabilities: {}, clientInfo: {name: 'interop', version: '1'}, _meta: {'acpod.dev/client': 'a secret of this client'}});
  if (mine.sessionId) {
    await agent.request(acp.methods.agent.session.resume, {sessionId: mine.sessionId, cwd: '/', mcpServers: [declaration]});
  } else {
    ({sessionId: mine.sessionId} = await agent.request(acp.methods.agent.session.new, {cwd: '/', mcpServers: [declaration]}));
    const turn = agent.request(acp.methods.agent.session.prompt, {sessionId: mine.sessionId, prompt: [{type: 'text', text: 'hello'}]});
    assert.equal((await turn).stopReason, 'end_turn');
  }
  await connection.closed;
}

test('the ACP SDK passes client-check', async () => {
  const check = spawn(`${process.env.ACPOD}-chaos`, ['client-check', '--listen', '127.0.0.1:0', '--json'], {stdio: ['ignore', 'pipe', 'pipe']});
  process.once('exit', () => check.kill('SIGKILL'));
  let out = '', err = '', over = false;
  check.stdout.on('data', (data) => { out += data; });
  check.stderr.on('data', (data) => { err += data; });
  const ended = new Promise((resolve) => check.on('close', (code) => { over = true; resolve(code); }));
  while (!over && !/connect the client to \S+\n/.test(err)) await pause(20);
  const [, url] = err.match(/connect the client to (\S+)\n/);
  const mine = {};
  for (let wait = 200; !over; wait = Math.min(2 * wait, 2000)) {
    const lost = await life(url, mine).then(() => { wait = 200; }, (error) => error);
    if (lost instanceof assert.AssertionError) throw lost;
    await Promise.race([pause(wait), ended]);
  }
  const code = await ended;
  const {rows} = JSON.parse(out);
  assert.deepEqual(rows.filter(({status}) => status === 'fail'), []);
  assert.equal(code, 0);
  const passed = rows.filter(({status}) => status === 'pass').map(({name}) => name);
  for (const name of ['a tool is called and gives a result', 'a prompt has content', 'it resumes its session', 'its servers are served again']) assert.ok(passed.includes(name), name);
});
