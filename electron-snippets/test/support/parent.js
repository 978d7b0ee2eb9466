'use strict';

/** An app that starts a sidecar, tells its pid, and waits to be killed. */

const { SidecarClient } = require('../../client.js');

async function main() {
  const client = new SidecarClient({ command: JSON.parse(process.argv[2]) });
  await client.start();
  await client.request('memory/load', { waitMs: 0 });
  process.stdout.write(`${client.pid}\n`);
}

main();
