// Runs the built pod with one agent in a home of its own, which outlives the pod: it can be started again on it.
import {spawn} from 'node:child_process';
import {randomUUID} from 'node:crypto';
import {mkdir, mkdtemp, readdir, readFile, rm, writeFile} from 'node:fs/promises';
import {createServer, connect} from 'node:net';
import {tmpdir} from 'node:os';
import {dirname, join} from 'node:path';
import {setTimeout as pause} from 'node:timers/promises';

export const patience = 120_000; // milliseconds; agents start slowly on a busy machine

// until polls for a condition.
export async function until(what, holds) {
  for (const end = Date.now() + patience; ;) {
    const value = await holds();
    if (value) return value;
    if (Date.now() > end) throw new Error(`${what} did not come`);
    await pause(50);
  }
}

const toml = (agent, command, delivery) => `
[acp]
listen = "127.0.0.1:0"
[agent]
command = ${JSON.stringify(command)}
${agent.trim()}
delivery = "${delivery}"
cancel_timeout = "20s"
[mcp]
listen = "127.0.0.1:0"
[debug]
listen = "127.0.0.1:0"
[pod]
drain_timeout = "5s"
`;

export class Pod {
  // make lays out a home with the agent's own files in it. agent: see agents.mjs.
  static async make(agent, model, delivery) {
    const pod = new Pod();
    pod.home = await mkdtemp(join(tmpdir(), `acpod-${agent.name}-`));
    pod.work = join(pod.home, 'work');
    await mkdir(pod.work);
    for (const [name, text] of Object.entries(agent.files(model.url, pod.work))) {
      const file = join(pod.home, name);
      await mkdir(dirname(file), {recursive: true});
      await writeFile(file, typeof text === 'string' ? text : JSON.stringify(text, null, 2));
    }
    await writeFile(join(pod.home, 'acpod.toml'), toml(agent.config(model.url), agent.command, delivery));
    pod.path = `${agent.path.join(':')}:${process.env.PATH}`;
    return pod;
  }

  log = '';

  async start() {
    const ready = join(this.home, 'ready.json');
    const child = spawn(process.env.ACPOD, ['serve', '--config', join(this.home, 'acpod.toml'), '--ready-file', ready], {
      cwd: this.work, env: {HOME: this.home, PATH: this.path, USER: 'tester'}, stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => { this.log += data; });
    this.kill = () => child.kill('SIGKILL'); // the guardian ends what is left of it
    process.once('exit', this.kill);
    this.ended = new Promise((resolve) => { child.on('exit', (code, signal) => resolve({code, signal})); });
    this.pid = child.pid;
    let addresses;
    for (const end = Date.now() + patience; !addresses;) {
      if (Date.now() > end || child.exitCode !== null) throw new Error(`the pod did not start:\n${this.log}`);
      await pause(20);
      addresses = await readFile(ready, 'utf8').then(JSON.parse, () => undefined);
    }
    Object.assign(this, addresses);
    this.signal = (name) => child.kill(name);
  }

  // stop ends the pod as an operator would.
  async stop() {
    this.signal('SIGTERM');
    const {code, signal} = await this.ended;
    process.removeListener('exit', this.kill);
    if (code !== 0) throw new Error(`the pod ended with ${code ?? signal}:\n${this.log}`);
  }

  // forget puts another id into the record of a session, as if the agent had lost that conversation. The pod is not running.
  async forget(sessionId) {
    const folder = join(this.home, '.local/state/acpod/sessions');
    for (const name of await readdir(folder, {recursive: true})) {
      if (!name.endsWith('.json')) continue;
      const text = await readFile(join(folder, name), 'utf8');
      if (text.includes(sessionId)) await writeFile(join(folder, name), JSON.stringify({...JSON.parse(text), agent: randomUUID()}));
    }
  }

  async remove() { await rm(this.home, {recursive: true, force: true, maxRetries: 5}); }

  async tree() { return (await fetch(`http://${this.debug}/debug/tree`)).json(); }

  // sessions are the nodes of all sessions; a closed one may still be there for a moment.
  async sessions() {
    const find = (node) => (node.kind === 'session' ? [node] : (node.children ?? []).flatMap(find));
    return find(await this.tree());
  }
}

// Cable is a way to the pod that can be cut.
export class Cable {
  static async lay(address) {
    const cable = new Cable();
    const [host, port] = address.split(':');
    cable.ends = new Set();
    cable.server = createServer((near) => {
      const far = connect(Number(port), host);
      for (const [one, other] of [[near, far], [far, near]]) {
        cable.ends.add(one);
        one.pipe(other);
        one.on('error', () => other.destroy());
        one.on('close', () => { cable.ends.delete(one); other.destroy(); });
      }
    });
    await new Promise((resolve) => { cable.server.listen(0, '127.0.0.1', resolve); });
    cable.address = `127.0.0.1:${cable.server.address().port}`;
    return cable;
  }

  cut() {
    for (const end of this.ends) end.resetAndDestroy();
    this.server.close();
  }
}
