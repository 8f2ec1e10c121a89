// Starts each server of servers.json, asks it for its tools, and writes [{server, tools: [{name, description, inputSchema}]}] to
// the file given, in the order of servers.json. No server gets a credential: listing needs none. `node list.mjs FILE`.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

const here = import.meta.dirname;
const patience = 120_000; // ms for one server, on a machine that is busy
const tmp = mkdtempSync(path.join(tmpdir(), 'acpod-search-'));

// toolsOf starts one server over stdio and returns all pages of its tools.
async function toolsOf({ package: name, args = [], env = {} }) {
  const root = path.join(here, 'node_modules', name);
  const { bin } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  const entry = path.join(root, typeof bin === 'string' ? bin : Object.values(bin)[0]);
  const child = spawn(process.execPath, [entry, ...args.map((a) => a.replace('{tmp}', tmp))], {
    cwd: tmp,
    env: { PATH: process.env.PATH, HOME: tmp, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let stderr = '';
  child.stderr.on('data', (d) => { stderr = (stderr + d).slice(-500); });
  child.stdin.on('error', () => {});
  const open = new Map();
  let rest = '';
  child.stdout.setEncoding('utf8').on('data', (d) => {
    const lines = (rest + d).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      let m;
      try { m = JSON.parse(line); } catch { continue; } // some print a banner
      if (m.method && m.id !== undefined) send({ id: m.id, result: m.method === 'roots/list' ? { roots: [] } : {} });
      else open.get(m.id)?.(m);
    }
  });
  const send = (m) => child.stdin.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\n');
  let id = 0;
  const ask = (method, params) => new Promise((resolve, reject) => {
    open.set(++id, (m) => (m.error ? reject(new Error(JSON.stringify(m.error))) : resolve(m.result)));
    send({ id, method, params });
  });
  let timer;
  const lost = new Promise((_, reject) => {
    child.on('error', reject);
    child.on('exit', (code) => reject(new Error(`ended with ${code}: ${stderr}`)));
    timer = setTimeout(() => reject(new Error(`said nothing for ${patience} ms: ${stderr}`)), patience);
  });
  lost.catch(() => {});
  try {
    await Promise.race([lost, ask('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'acpod-search', version: '0' } })]);
    send({ method: 'notifications/initialized' });
    const tools = [];
    for (let cursor; ;) {
      const page = await Promise.race([lost, ask('tools/list', cursor ? { cursor } : {})]);
      tools.push(...page.tools.map(({ name, description = '', inputSchema }) => ({ name, description, inputSchema })));
      cursor = page.nextCursor;
      if (!cursor) return tools;
    }
  } finally {
    clearTimeout(timer);
    child.kill('SIGKILL');
  }
}

const lists = [];
try {
  for (const [server, how] of Object.entries(JSON.parse(readFileSync(path.join(here, 'servers.json'), 'utf8')))) {
    const tools = await toolsOf(how).catch((e) => { throw new Error(`${server}: ${e.message}`); });
    console.error(`${server}: ${tools.length} tools`);
    lists.push({ server, tools });
  }
  writeFileSync(process.argv[2], JSON.stringify(lists));
} finally {
  rmSync(tmp, { recursive: true, force: true });
}
process.exit(0);
