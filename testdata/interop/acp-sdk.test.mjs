// The TypeScript ACP SDK as a client over WebSocket, serving an MCP server through the same socket.
import * as acp from '@agentclientprotocol/sdk/unstable';
import {createWebSocketStream} from '@agentclientprotocol/sdk/experimental/ws-client';
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import WebSocket from 'ws';
import {startPod, until} from './pod.mjs';

let pod;
before(async () => { pod = await startPod(); });
after(() => pod.stop());

test('the ACP SDK opens a session, its tool is found and called, and text streams back', async () => {
  const provider = new acp.McpOverAcpProvider();
  const calls = [], heard = [], states = [];
  const connection = acp.client({name: 'acpod-interop'})
    .onRequest(acp.methods.client.mcp.message, provider.handleRequest)
    .onNotification(acp.methods.client.session.update, ({params}) => {
      if (params.update.sessionUpdate === 'agent_message_chunk') heard.push(params.update.content.text);
      states.push(params.update.sessionUpdate);
    })
    .connect(createWebSocketStream(`ws://${pod.public}/acp`, {WebSocket, protocols: ['acp.v1']}));
  const agent = connection.agent;
  const server = provider.registerServer(agent, {
    name: 'katashiro',
    async handler({method, params}) {
      switch (method) {
        case 'tools/list':
          return {result: {resultType: 'complete', tools: [{name: 'katashiro.click', description: 'Click an element', inputSchema: {type: 'object', properties: {selector: {type: 'string'}}}}]}};
        case 'tools/call':
          calls.push(params);
          return {result: {resultType: 'complete', content: [{type: 'text', text: `clicked ${params.arguments.selector}`}]}};
      }
      return {error: {code: -32601, message: `no ${method}`}};
    },
  });

  const hello = await agent.request(acp.methods.agent.initialize, {protocolVersion: 1, clientCapabilities: {}, clientInfo: {name: 'interop', version: '1'}});
  assert.equal(hello.protocolVersion, 1);
  assert.equal(hello.agentInfo.name, 'acpod');
  assert.equal(hello.agentCapabilities.mcpCapabilities.acp, true);

  const {sessionId} = await agent.request(acp.methods.agent.session.new, {cwd: '/', mcpServers: [server.declaration]});
  assert.match(sessionId, /^sess_[0-9a-f-]{36}$/);
  const prompt = (text) => agent.request(acp.methods.agent.session.prompt, {sessionId, prompt: [{type: 'text', text}]});

  await until('the tool in a search', async () => {
    heard.length = 0;
    assert.equal((await prompt('/search click')).stopReason, 'end_turn');
    return heard.join('').includes('katashiro.click');
  });
  heard.length = 0;
  assert.equal((await prompt('/call katashiro.click {"selector":"#bump"}')).stopReason, 'end_turn');
  assert.equal(heard.join(''), 'clicked #bump\n');
  assert.deepEqual(calls.map(({name, arguments: given}) => [name, given]), [['katashiro.click', {selector: '#bump'}]]);
  assert.ok(states.includes('tool_call') && states.includes('tool_call_update'));
  await agent.request(acp.methods.agent.session.close, {sessionId});
});

test('the ACP SDK cancels a turn', async () => {
  const connection = acp.client({name: 'acpod-interop'})
    .onNotification(acp.methods.client.session.update, () => {})
    .connect(createWebSocketStream(`ws://${pod.public}/acp`, {WebSocket, protocols: ['acp.v1']}));
  const agent = connection.agent;
  await agent.request(acp.methods.agent.initialize, {protocolVersion: 1, clientCapabilities: {}});
  const {sessionId} = await agent.request(acp.methods.agent.session.new, {cwd: '/', mcpServers: []});
  const turn = agent.request(acp.methods.agent.session.prompt, {sessionId, prompt: [{type: 'text', text: '/sleep 1h'}]});
  await agent.notify(acp.methods.agent.session.cancel, {sessionId});
  assert.equal((await turn).stopReason, 'cancelled');
});
