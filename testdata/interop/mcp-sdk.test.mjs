// The official MCP client for TypeScript against the facade, as a session's agent would use it and without a token.
import {Client} from '@modelcontextprotocol/sdk/client/index.js';
import {StreamableHTTPClientTransport} from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {config, RawClient, startPod, until} from './pod.mjs';

let pod, browser, facade;
before(async () => {
  pod = await startPod(`${config}[agent]\ndriver = "none"\n`);
  browser = await RawClient.connect(pod, 'A');
  await browser.request('initialize', {protocolVersion: 1});
  const opened = await browser.request('session/new', {cwd: '/', mcpServers: [browser.declaration]});
  facade = opened._meta['acpod.dev/facade'];
});
after(async () => { browser.close(); await pod.stop(); });

async function connect(token) {
  const headers = token ? {Authorization: `Bearer ${token}`} : {};
  const client = new Client({name: 'interop', version: '1'});
  await client.connect(new StreamableHTTPClientTransport(new URL(`http://${pod.facade}/mcp`), {requestInit: {headers}}));
  return client;
}

test('the MCP SDK initializes, lists two tools, searches and calls', async () => {
  const client = await connect(facade.token);
  assert.equal(client.getServerVersion().name, 'oab-mcp-facade');
  assert.ok(client.getInstructions().length > 0);
  const {tools} = await client.listTools();
  assert.deepEqual(tools.map(({name}) => name).sort(), ['execute_capability', 'search_capabilities']);

  await until('the client\'s tool', async () => {
    const {content} = await client.callTool({name: 'search_capabilities', arguments: {query: 'click'}});
    return JSON.parse(content[0].text).capabilities.some(({name}) => name === 'katashiro.click');
  });
  const result = await client.callTool({name: 'execute_capability', arguments: {name: 'katashiro.click', arguments: {a: 1}}});
  assert.deepEqual(result.content, [{type: 'text', text: 'called katashiro.click'}]);
  await client.close();
});

test('without a token the MCP SDK finds nothing of a session', async () => {
  const client = await connect();
  const {content} = await client.callTool({name: 'search_capabilities', arguments: {}});
  assert.deepEqual(JSON.parse(content[0].text).capabilities, []);
  const refused = await client.callTool({name: 'execute_capability', arguments: {name: 'katashiro.click'}});
  assert.equal(refused.isError, true);
  assert.equal(refused._meta['acpod.dev/refusal'], 'unknown');
  await client.close();
});

test('an aborted call of the MCP SDK is cancelled and the next one works', async () => {
  const client = await connect(facade.token);
  const controller = new AbortController();
  const held = client.callTool({name: 'execute_capability', arguments: {name: 'katashiro.click', arguments: {hold: true}}}, undefined, {signal: controller.signal});
  await until('the held call at the client', () => browser.frames.some(({params}) => params?.method === 'tools/call' && params.params.arguments?.hold));
  controller.abort('enough');
  await assert.rejects(held);
  await until('the cancel at the client', () => browser.frames.some(({method}) => method === '$/cancel_request'));
  const result = await client.callTool({name: 'execute_capability', arguments: {name: 'katashiro.click', arguments: {}}});
  assert.equal(result.isError ?? false, false);
  await client.close();
});
