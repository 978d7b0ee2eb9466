'use strict';

/** A sidecar that misbehaves on demand: node fake.js MODE [ARGUMENT]. */

const fs = require('node:fs');
const readline = require('node:readline');

const [mode, argument] = process.argv.slice(2);
const say = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const hello = (protocolVersion) => ({ protocolVersion, serverInfo: { name: 'xiaobai-memory', version: '9.8.7' } });

let asked;

const MODES = {
  /** Answers every call with its method and params. */
  echo: ({ id, method, params }) => say({ id, result: method === 'initialize' ? hello(1) : { method, params } }),
  /** Sends a request for which nobody is registered, and answers a call with the code of the error that it got. */
  asks: ({ id, method, error }) => {
    if (method === 'initialize') return say({ id, result: hello(1) });
    if (method === undefined) return say({ id: asked, result: { code: error.code } });
    asked = id;
    return say({ id: 'sidecar-1', method: 'model/complete', params: {} });
  },
  /** Sends an answer byte by byte. */
  bytes: ({ id, params }) => {
    const bytes = Buffer.from(`${JSON.stringify({ jsonrpc: '2.0', id, result: params.text })}\n`);
    const send = (at) => {
      if (at === bytes.length) return;
      fs.writeSync(1, bytes, at, 1);
      setImmediate(send, at + 1);
    };
    send(0);
  },
  /** Answers with as many characters as asked for. */
  large: ({ id, params }) => say({ id, result: '记'.repeat(params.characters) }),
  /** Speaks another version of the protocol. */
  version: ({ id }) => say({ id, result: hello(Number(argument)) }),
  /** Dies in the middle of any call but the handshake. */
  dies: ({ id, method }) => {
    if (method === 'initialize') return say({ id, result: hello(1) });
    process.stderr.write('error: the disk is on fire\nhint: Call the fire brigade.\n', () => process.exit(1));
    return undefined;
  },
  /** Shakes hands, then never answers again; tells which cancellations it has seen. */
  mute: ({ id, method, params }) => {
    if (method === 'initialize') say({ id, result: hello(1) });
    if (method === '$/cancelRequest') say({ method: 'test/cancelled', params });
  },
  /** Writes what is no JSON, calls that are no events, then the answer. */
  noise: ({ id }) => {
    process.stdout.write('this is not JSON\n\n');
    say({ method: 'error', params: { not: 'an event' } });
    say({ id: 4711, result: 'nobody asked' });
    process.stderr.write('a line for the log\n');
    say({ id, result: 'heard' });
  },
  /** Stops listening without ending. */
  deafens: ({ id }) => {
    process.stdin.destroy();
    fs.closeSync(0);
    say({ id, result: 'deaf' });
    setInterval(() => {}, 1000);
  },
  /** Ignores the end of its input and SIGTERM. */
  stubborn: ({ id }) => {
    process.on('SIGTERM', () => {});
    setInterval(() => {}, 1000);
    say({ id, result: 'never' });
  },
};

if (mode === 'crash') {
  process.stderr.write('error: it cannot start\nhint: Do something about it.\n', () => process.exit(1));
} else {
  readline.createInterface({ input: process.stdin }).on('line', (line) => MODES[mode](JSON.parse(line)));
}
