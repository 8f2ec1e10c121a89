// What /proc says of a pod's processes.
import {readdir, readFile} from 'node:fs/promises';

const read = (pid, name) => readFile(`/proc/${pid}/${name}`, 'utf8').catch(() => ''); // it may have ended

// below is every living process that comes from pid, by pid: {command, environ}. A process whose parent has ended counts
// when it still is in a group or session of one of them.
export async function below(root) {
  const all = new Map();
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const stat = await read(name, 'stat');
    if (!stat) continue;
    const [state, parent, group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (state !== 'Z') all.set(Number(name), {parent: Number(parent), group: Number(group)});
  }
  const found = new Map();
  for (let grew = true; grew;) {
    grew = false;
    for (const [pid, {parent, group}] of all) {
      if (found.has(pid) || pid === root) continue;
      if (parent !== root && !found.has(parent) && !found.has(group)) continue;
      found.set(pid, {command: (await read(pid, 'cmdline')).replaceAll('\0', ' ').trim(), environ: await read(pid, 'environ')});
      grew = true;
    }
  }
  return found;
}

// alive of these pids.
export async function alive(pids) {
  const left = [];
  for (const pid of pids) {
    const stat = await read(pid, 'stat');
    if (stat && stat.slice(stat.lastIndexOf(')') + 2)[0] !== 'Z') left.push(pid);
  }
  return left;
}

// commandLines is every command line on this machine that has the text in it.
export async function commandLines(text) {
  const found = [];
  for (const name of await readdir('/proc')) {
    if (/^\d+$/.test(name) && (await read(name, 'cmdline')).includes(text)) found.push(name);
  }
  return found;
}

export const tokenOf = (environ) => environ.split('\0').find((one) => one.startsWith('OPENAB_SESSION_TOKEN='))?.slice('OPENAB_SESSION_TOKEN='.length);
