// What the model does is said by the last prompt that has `play: WORD NAME` in it, and by how many tools have answered since.
//
//   play: tools     looks for a capability, executes it, tells what it gave
//   play: click     executes it at once, tells what it gave
//   play: hold NAME says a word, waits until NAME is released, says another
//   play: say NAME  says NAME
const capability = 'katashiro.click';

const directive = /play: (tools|click|hold|say)(?: ([\w-]+))?/g;

// asked finds the last directive of a text, as {word, name}.
export const asked = (text) => {
  const all = [...text.matchAll(directive)];
  if (all.length === 0) return undefined;
  const [, word, name] = all.at(-1);
  return {word, name};
};

const execute = (selector) => ({suffix: 'execute_capability', arguments: {name: capability, arguments: {selector}}});
const plays = {
  tools: [{suffix: 'search_capabilities', arguments: {query: 'click'}}, execute('#go')],
  click: [execute('#again')],
};

// With tools of their own (agent.delivery = "proxy") there is nothing to look for: the one that was meant is called.
const own = /katashiro[._]click$/;

// next is {call: {tool, arguments}} or {say: [text | {gate}]}.
export function next({ask, results, tools}) {
  const direct = tools.find(({name}) => own.test(name));
  if (direct && plays[ask.word] && results.length === 0) return {call: {tool: direct, arguments: plays[ask.word].at(-1).arguments.arguments}};
  const call = direct ? undefined : plays[ask.word]?.[results.length];
  if (call) {
    const tool = tools.find(({name}) => name.endsWith(call.suffix));
    if (!tool) return {say: [`No tool is called ${call.suffix} here; there are ${tools.map(({name}) => name).join(', ')}.`]};
    return {call: {tool, arguments: call.arguments}};
  }
  switch (ask.word) {
    case 'hold': return {say: ['Before. ', {gate: ask.name}, 'After.']};
    case 'say': return {say: [`Said `, `${ask.name}.`]};
    default: return {say: ['The tool said: ', results.at(-1) ?? 'nothing', '.']};
  }
}
