// The client that the suite starts for a scenario: `acpod mcp …` with an mcp.json that has the suite's server. The suite gives the address
// as the last argument, and the scenario, the protocol version and what is to be called in the environment.
import {spawn} from 'node:child_process';
import {mkdtemp, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

const {ACPOD, MCP_CONFORMANCE_SCENARIO: scenario, MCP_CONFORMANCE_PROTOCOL_VERSION: version, MCP_CONFORMANCE_CONTEXT: context} = process.env;
const url = process.argv.at(-1);
const home = await mkdtemp(join(tmpdir(), 'acpod-conformance-client-'));
const config = join(home, 'mcp.json');
const entry = {type: 'http', url, ...(version === '2026-07-28' && {protocol_version: version})};
await writeFile(config, JSON.stringify({mcpServers: {suite: entry}}));

// acpod runs one command and gives its result; what it says on stderr, and its status, are shown.
async function acpod(...args) {
  const child = spawn(ACPOD, ['mcp', ...args, '--mcp-config', config], {
    cwd: home, stdio: ['ignore', 'pipe', 'inherit'], env: {PATH: process.env.PATH, HOME: home, XDG_STATE_HOME: join(home, 'state')},
  });
  let out = '';
  child.stdout.on('data', (data) => { out += data; });
  const status = await new Promise((resolve) => child.on('close', resolve));
  console.log(`acpod mcp ${args.join(' ')} → ${status}: ${out}`);
  return {status, out};
}

const call = (name, args) => acpod('call', name, JSON.stringify(args));
const tools = async () => JSON.parse((await acpod('search', '--json', '--limit', '100')).out).capabilities;

const play = {
  initialize: () => acpod('list'),
  tools_call: () => call('add_numbers', {a: 5, b: 3}),
  'sse-retry': () => call('test_reconnection', {}),
  'request-metadata': () => acpod('list'),
  'json-schema-ref-no-deref': async () => { await tools(); return call('lookup_user', {id: 'a'}); },
  'json-schema-2020-12-preservation': async () => {
    const focal = (await tools()).find(({name}) => name === 'json_schema_2020_12_tool');
    return call('json_schema_echo', {schema: focal.input_schema});
  },
  'http-standard-headers': () => call('test_headers', {}),
  'http-custom-headers': async () => {
    for (const {name, arguments: args} of JSON.parse(context).toolCalls) await call(name, args);
  },
  'http-invalid-tool-headers': async () => {
    for (const {name} of await tools()) await call(name, {region: 'x', value: 'x', field1: 'x', field2: 'x', score: 1, nil: null, data: {}, items: []});
  },
  'elicitation-sep1034-client-defaults': () => call('test_client_elicitation_defaults', {}),
  'sep-2322-client-request-state': async () => {
    for (const {name} of await tools()) await call(name, {});
  },
}[scenario];

try {
  if (!play) throw new Error(`the client does not know the scenario ${scenario}`);
  await play();
} finally {
  await rm(home, {recursive: true, force: true});
}
