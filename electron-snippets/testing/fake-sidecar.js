'use strict';

/**
 * A sidecar that misbehaves. `--protocol N` speaks another version · `--crash-after N` exits with 3 after N answers ·
 * `--last-words` complains before that · `--deaf` reads and never answers · `--bytewise` writes byte by byte ·
 * `--stubborn` ignores the end of input and SIGTERM · `--noise` says things that are not protocol · `--silent-health`
 * answers everything but sync/status.
 */

const flags = process.argv.slice(2);
const has = (flag) => flags.includes(flag);
const number = (flag, otherwise) => (has(flag) ? Number(flags[flags.indexOf(flag) + 1]) : otherwise);

const protocol = number('--protocol', 1);
let left = number('--crash-after', Infinity);

function crash() {
  if (has('--last-words')) process.stderr.write('error: the disk is full\nhint: Free some space.\n');
  process.exitCode = 3;
  process.stdin.destroy();
}

function say(message) {
  const bytes = Buffer.from(`${JSON.stringify(message)}\n`);
  if (!has('--bytewise')) return void process.stdout.write(bytes);
  for (const byte of bytes) process.stdout.write(Buffer.from([byte]));
}

function answer({ id, method, params }) {
  if (id === undefined || has('--deaf') || (has('--silent-health') && method === 'sync/status')) return;
  if (has('--noise')) {
    process.stdout.write('not json\n\n[]\n"text"\n{"jsonrpc":"2.0","id":99999,"result":1}\n{"jsonrpc":"2.0","id":null}\n');
  }
  const result =
    method === 'initialize'
      ? { protocolVersion: protocol, serverInfo: { name: 'fake', version: '9.9.9' } }
      : { method, params, content: '# 记忆😀', prompt: '记忆', source: 'local' };
  say({ jsonrpc: '2.0', id, result });
  left -= 1;
  if (left <= 0) crash();
}

if (left <= 0) crash();
let rest = '';
process.stdin.setEncoding('utf8');
process.stdin.on('data', (text) => {
  const lines = (rest + text).split('\n');
  rest = lines.pop();
  for (const line of lines) if (line) answer(JSON.parse(line));
});
if (has('--stubborn')) {
  setInterval(() => {}, 1000);
  process.on('SIGTERM', () => {});
}
