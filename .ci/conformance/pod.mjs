// Starts the built pod, or its facade alone, with the fixture behind it, and opens a session whose token the suite calls with.
import {spawn} from 'node:child_process';
import {mkdir, mkdtemp, readFile, rm, writeFile} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {setTimeout as pause} from 'node:timers/promises';

const patience = 60_000; // milliseconds
const fixture = join(import.meta.dirname, 'fixture.mjs');

const config = (more) => `
[acp]
listen = "127.0.0.1:0"
[agent]
driver = "none"
[mcp]
listen = "127.0.0.1:0"
${more}
[debug]
listen = ""
`;

// start runs `acpod serve` or `acpod facade`: {public, facade} as host:port, stop().
export async function start(command, {mcp = '', servers = {}} = {}) {
  const home = await mkdtemp(join(tmpdir(), 'acpod-conformance-'));
  const at = (name) => join(home, name);
  await mkdir(at('work'));
  await writeFile(at('acpod.toml'), config(mcp));
  await writeFile(at('mcp.json'), JSON.stringify({mcpServers: servers}));
  let log = '';
  const child = spawn(process.env.ACPOD, [command, '--config', at('acpod.toml'), '--mcp-config', at('mcp.json'), '--ready-file', at('ready.json')], {
    cwd: at('work'), env: {HOME: home, PATH: process.env.PATH, USER: 'tester'}, stdio: ['ignore', 'pipe', 'pipe'],
  });
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => { log += data; });
  process.once('exit', () => child.kill('SIGKILL')); // a suite that failed leaves no pod behind
  const ended = new Promise((resolve) => child.on('exit', (code, signal) => resolve({code, signal})));
  let addresses;
  for (const end = Date.now() + patience; !addresses;) {
    if (Date.now() > end || child.exitCode !== null) throw new Error(`acpod ${command} did not start:\n${log}`);
    await pause(20);
    addresses = await readFile(at('ready.json'), 'utf8').then(JSON.parse, () => undefined);
  }
  return {
    ...addresses,
    async stop() {
      child.kill('SIGTERM');
      const {code, signal} = await ended;
      await rm(home, {recursive: true, force: true});
      if (code !== 0) throw new Error(`acpod ${command} ended with ${code ?? signal}:\n${log}`);
    },
  };
}

// withFixture is an mcp.json with the fixture in it.
export const withFixture = {fixture: {command: process.execPath, args: [fixture]}};

// session opens one on /acp, and gives its token; it lives as long as the socket.
export async function session(pod) {
  const socket = new WebSocket(`ws://${pod.public}/acp`, ['acp.v1']);
  const answers = new Map();
  socket.addEventListener('message', ({data}) => { const {id, ...answer} = JSON.parse(data); answers.get(id)?.(answer); });
  await new Promise((resolve, reject) => { socket.addEventListener('open', resolve); socket.addEventListener('error', reject); });
  const ask = (id, method, params) => new Promise((resolve, reject) => {
    answers.set(id, ({result, error}) => (error ? reject(new Error(error.message)) : resolve(result)));
    socket.send(JSON.stringify({jsonrpc: '2.0', id, method, params}));
  });
  await ask(1, 'initialize', {protocolVersion: 1});
  const {_meta} = await ask(2, 'session/new', {cwd: '/', mcpServers: []});
  return {token: _meta['acpod.dev/facade'].token, end: () => socket.close()};
}
