// MCP servers that people run, in mcp.json, used through the facade by the official MCP client as an agent uses them.
import {Client} from '@modelcontextprotocol/sdk/client/index.js';
import {StreamableHTTPClientTransport} from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {ElicitRequestSchema} from '@modelcontextprotocol/sdk/types.js';
import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import {mkdtemp, readFile, realpath, rm, writeFile} from 'node:fs/promises';
import {createServer} from 'node:http';
import {createServer as createSocketServer} from 'node:net';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {after, before, test} from 'node:test';
import {fileURLToPath} from 'node:url';
import {config, RawClient, startPod, until} from './pod.mjs';

const installed = (path) => fileURLToPath(new URL(`node_modules/${path}`, import.meta.url));
const everything = installed('@modelcontextprotocol/server-everything/dist/index.js');

let pod, folder, site, remote;

before(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'acpod-servers-')));
  await writeFile(join(folder, 'note.txt'), 'a note of <ours> & é\n');
  await writeFile(join(folder, 'playwright.json'), JSON.stringify({browser: {isolated: true, launchOptions: {
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', headless: true,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  }}}));
  site = createServer((request, response) => {
    response.setHeader('Content-Type', 'text/html');
    response.end(request.url === '/next' ? '<title>Next</title><h1>The next page</h1>' : '<title>First</title><h1>Hello from the pod\'s test</h1><a href="/next">onwards</a>');
  });
  await new Promise((resolve) => { site.listen(0, '127.0.0.1', resolve); });
  const port = await freePort();
  remote = spawn(process.execPath, [everything, 'streamableHttp'], {env: {PATH: process.env.PATH, PORT: String(port)}, stdio: ['ignore', 'ignore', 'pipe']});
  let said = '';
  remote.stderr.on('data', (data) => { said += data; });
  await until('the HTTP server', () => said.includes('listening'));
  const node = (...args) => ({command: process.execPath, args});
  pod = await startPod(`${config}[agent]\ndriver = "none"\n`, {mcpServers: {
    everything: node(everything, 'stdio'),
    remote: {type: 'http', url: `http://127.0.0.1:${port}/mcp`},
    files: {...node(installed('@modelcontextprotocol/server-filesystem/dist/index.js'), folder), tool_filter: {exclude: ['write_*', 'edit_*', 'move_*', 'create_*']}},
    memory: {...node(installed('@modelcontextprotocol/server-memory/dist/index.js')), isolation: 'session', env: {MEMORY_FILE_PATH: join(folder, 'memory-is-shared-by-path.jsonl')}},
    browser: {...node(installed('@playwright/mcp/cli.js'), '--config', join(folder, 'playwright.json')), isolation: 'session'},
    missing: {command: 'no-such-server-on-this-machine'},
  }, roots: [folder]});
});

after(async () => {
  await pod?.stop();
  remote?.kill();
  site?.close();
  await rm(folder, {recursive: true, force: true});
});

async function freePort() {
  const server = createSocketServer();
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  const {port} = server.address();
  await new Promise((resolve) => { server.close(resolve); });
  return port;
}

// agent opens a session and gives the MCP client of its agent.
async function agent(capabilities = {}) {
  const opener = await RawClient.connect(pod, 'A');
  await opener.request('initialize', {protocolVersion: 1});
  const {sessionId, _meta} = await opener.request('session/new', {cwd: '/', mcpServers: []});
  const client = new Client({name: 'interop', version: '1'}, {capabilities});
  const {url, token} = _meta['acpod.dev/facade'];
  await client.connect(new StreamableHTTPClientTransport(new URL(url), {requestInit: {headers: {Authorization: `Bearer ${token}`}}}));
  return {
    client,
    async search(args) {
      const {content} = await client.callTool({name: 'search_capabilities', arguments: args});
      return JSON.parse(content[0].text);
    },
    call: (name, args, options) => client.callTool({name: 'execute_capability', arguments: {name, arguments: args}}, undefined, {timeout: 60_000, ...options}),
    async end() {
      await client.close();
      await opener.request('session/close', {sessionId});
      opener.close();
    },
  };
}

test('a search over all of them finds each, names what is not there, and shows no tool that the filter leaves out', {timeout: 90_000}, async () => {
  const {search, end} = await agent();
  const all = await until('every server', async () => {
    const answer = await search({limit: 100});
    return answer.pending.length === 0 && answer;
  });
  for (let cursor = all.next_cursor; cursor;) {
    const page = await search({limit: 100, cursor});
    all.capabilities.push(...page.capabilities);
    cursor = page.next_cursor;
  }
  assert.equal(all.capabilities.length, all.total);
  const providers = new Set(all.capabilities.map(({provider}) => provider));
  assert.deepEqual([...providers].sort(), ['browser', 'everything', 'files', 'memory', 'remote']);
  assert.match(all.unavailable.find(({provider}) => provider === 'missing').error, /no-such-server-on-this-machine/);
  assert.ok(!all.capabilities.some(({name}) => /write_file|edit_file|move_file|create_directory/.test(name)));
  for (const [query, name] of [['read the text of a file', 'read_text_file'], ['go to a web page', 'browser_navigate'], ['add two numbers', 'get-sum'], ['create entities in the knowledge graph', 'create_entities']]) {
    const {capabilities} = await search({query, limit: 5});
    assert.ok(capabilities.some((one) => one.name.endsWith(name)), `${query}: ${capabilities.map((one) => one.name)}`);
  }
  await end();
});

for (const server of ['everything', 'remote']) {
  test(`server-everything as ${server}: texts, images, structures, links and progress come through`, {timeout: 60_000}, async () => {
    const {call, end} = await agent();
    assert.deepEqual((await call(`${server}.echo`, {message: '<hi> & é 😀'})).content, [{type: 'text', text: 'Echo: <hi> & é 😀'}]);
    assert.match((await call(`${server}.get-sum`, {a: 2, b: 40})).content[0].text, /42/);
    const picture = (await call(`${server}.get-tiny-image`, {})).content.find(({type}) => type === 'image');
    assert.equal(picture.mimeType, 'image/png');
    assert.equal(Buffer.from(picture.data, 'base64').subarray(1, 4).toString(), 'PNG');
    const structured = await call(`${server}.get-structured-content`, {location: 'Chicago'});
    assert.deepEqual(JSON.parse(structured.content[0].text), structured.structuredContent);
    assert.ok((await call(`${server}.get-resource-links`, {count: 2})).content.some(({type}) => type === 'resource_link'));
    const annotated = await call(`${server}.get-annotated-message`, {messageType: 'error', includeImage: true});
    assert.equal(annotated.content[0].annotations.priority, 1);

    const steps = [];
    const long = await call(`${server}.trigger-long-running-operation`, {duration: 1, steps: 4}, {onprogress: ({progress}) => steps.push(progress)});
    assert.match(long.content[0].text, /completed/i);
    assert.deepEqual(steps, [1, 2, 3, 4]);

    const refused = await call(`${server}.get-sum`, {a: 'two'});
    assert.equal(refused._meta['acpod.dev/refusal'], 'bad_arguments');
    assert.equal((await call(`${server}.no-such-tool`, {}))._meta['acpod.dev/refusal'], 'unknown');
    await end();
  });
}

test('a child does not see the pod\'s environment', {timeout: 60_000}, async () => {
  const {call, end} = await agent();
  const environment = JSON.parse((await call('everything.get-env', {})).content[0].text);
  assert.deepEqual(Object.keys(environment).filter((name) => !['HOME', 'PATH', 'TERM', 'USER'].includes(name)), []);
  await end();
});

test('server-filesystem reads inside its folder, and neither writes nor leaves it', {timeout: 60_000}, async () => {
  const {call, end} = await agent();
  const read = await call('read_text_file', {path: join(folder, 'note.txt')});
  assert.equal(read.content[0].text, 'a note of <ours> & é\n');
  assert.equal((await call('read_text_file', {path: '/etc/passwd'})).isError, true);
  assert.equal((await call('write_file', {path: join(folder, 'new.txt'), content: 'x'}))._meta['acpod.dev/refusal'], 'unknown');
  await assert.rejects(readFile(join(folder, 'new.txt')));
  await end();
});

test('Playwright\'s server opens a page in Chromium, reads it and goes on, each session in a browser of its own', {timeout: 90_000}, async () => {
  const one = await agent(), two = await agent();
  const address = `http://127.0.0.1:${site.address().port}/`;
  const opened = await one.call('browser_navigate', {url: address});
  assert.ok(!opened.isError, opened.content[0].text);
  const text = async ({call}) => (await call('browser_snapshot', {})).content.map((block) => block.text).join('\n');
  assert.match(await text(one), /Hello from the pod's test/);
  assert.doesNotMatch(await text(two), /Hello from the pod's test/);
  await one.call('browser_navigate', {url: `${address}next`});
  assert.match(await text(one), /The next page/);
  const shot = await one.call('browser_take_screenshot', {scale: 'css'});
  const picture = shot.content.find(({type}) => type === 'image');
  assert.ok(picture, JSON.stringify(shot));
  assert.ok(Buffer.from(picture.data, 'base64').length > 1000 && picture.mimeType.startsWith('image/'));
  await one.end();
  await two.end();
});

test('server-memory with isolation "session": a process for each session, which ends with it', {timeout: 60_000}, async () => {
  const before = new Set(await memories());
  const added = async () => (await memories()).filter((pid) => !before.has(pid));
  const one = await agent(), two = await agent();
  for (const [{call}, name] of [[one, 'Ada'], [two, 'Grace']]) {
    await call('memory.create_entities', {entities: [{name, entityType: 'person', observations: ['wrote a program']}]});
    assert.match((await call('memory.read_graph', {})).content[0].text, new RegExp(name));
  }
  assert.equal((await added()).length, 2);
  await one.end();
  await until('the end of one', async () => (await added()).length === 1);
  assert.match((await two.call('memory.read_graph', {})).content[0].text, /Grace/);
  await two.end();
  await until('the end of both', async () => (await added()).length === 0);

  // memories are the processes of this pod's memory servers that live in sessions.
  async function memories() {
    const tree = await (await fetch(`http://${pod.debug}/debug/tree`)).json();
    const found = [];
    const visit = (node, inSession) => {
      if (node.kind === 'provider' && node.path.endsWith('/memory') && inSession && node.attrs?.pid) found.push(node.attrs.pid);
      for (const child of node.children ?? []) visit(child, inSession || /\/sess-[^/]*$/.test(child.path));
    };
    visit(tree, false);
    return found;
  }
});

test('what server-everything asks is answered: the folders by the pod, a form by the one session\'s user, a model by nobody', {timeout: 60_000}, async () => {
  const asked = [];
  const {client, search, call, end} = await agent({elicitation: {}});
  client.setRequestHandler(ElicitRequestSchema, ({params}) => { asked.push(params); return {action: 'accept', content: {name: 'Ada Lovelace'}}; });
  assert.ok((await call('everything.get-roots-list', {})).content[0].text.includes(folder));
  const answered = await call('everything.trigger-elicitation-request', {});
  assert.equal(asked.length, 1);
  assert.match(asked[0].message, /everything/);
  assert.match(answered.content.map(({text}) => text).join('\n'), /Ada Lovelace/);
  const {capabilities} = await search({query: 'trigger a sampling request', limit: 20});
  assert.ok(capabilities.length > 0 && !capabilities.some(({name}) => name.includes('sampling'))); // nobody here has a model to lend
  await end();
});
