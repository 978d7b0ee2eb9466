// @supabase/lite, embedded. Its first line of standard input is its whole configuration, so that secrets stay out of
// the process list. The line "stop" asks it to end; an input that closes without it means that the launcher died, and
// then it takes the launcher's temporary directory along.
//
//   {"mode": "prepare"}  makes the roles, the Auth schema and its grants in an empty database, then exits
//   {"mode": "serve"}    applies pending migrations, listens on a free loopback port and prints {"port": …}

import { rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { serve } from "@hono/node-server";
import { App } from "@supabase/lite";
import { connect, renameBootstrapUser } from "./connection.mjs";

const input = createInterface({ input: process.stdin });
// stdout carries the one line of readiness; whatever a library prints belongs to the log.
for (const level of ["log", "info", "debug", "warn"]) console[level] = console.error;

const text = (name) => readFile(new URL(name, import.meta.url), "utf8");
const quoted = (value) => `'${value.replaceAll("'", "''")}'`;

/** The last mail to each address: where a test reads the code that a person would read in a letter or on a phone. */
class Letters {
  #last = new Map();

  async send({ to, subject, text, html }) {
    this.#last.set(to, { subject, text: text ?? html ?? "" });
    console.error(`mail to ${to}: ${subject}`);
  }

  last(address) {
    return this.#last.get(address);
  }
}

// A password costs 90 ms of arithmetic at the usual setting; here nobody steals the table and everybody logs in.
process.env.LITE_AUTH_BCRYPT_COST = "4";

function createApp(connection, config, letters) {
  return new App({
    connection,
    options: { server: { admin: false, disableStudio: true }, drivers: { email: letters } },
    api: { pg_safe_update: true }, // hosted projects load safeupdate for API requests
    db: { migrations: { enabled: false } },
    auth: {
      enabled: true,
      jwt_secret: config.jwtSecret,
      jwt_expiry: config.jwtExpiry,
      publishable_key: config.publishableKey,
      secret_key: config.secretKey,
      email: { enable_confirmations: false },
      enable_refresh_token_rotation: true, // a token is used up by its refresh, as a hosted project has it
    },
  });
}

async function prepare(config) {
  if (config.engine === "pglite") await renameBootstrapUser(config.database);
  const connection = await connect(config);
  await connection.script(await text("roles.sql"));
  const app = createApp(connection, config, new Letters());
  await app.init();
  await app.ensureSystemSchema();
  await connection.script(await text("auth.sql"));
  await connection.script(await text("realtime.sql"));
  await connection.close();
}

/** As `supabase db push`: in order, as the role `postgres`, each file and its record in one transaction. */
async function migrate(connection, migrations) {
  const known = await connection.exec("select version from supabase_migrations.schema_migrations");
  const applied = new Set(known.rows.map((row) => row.version));
  for (const { version, name, sql } of migrations) {
    if (applied.has(version)) continue;
    const values = `${quoted(version)}, ${quoted(name)}, array[${quoted(sql)}]`;
    try {
      await connection.script(`
        set local session authorization postgres;
        ${sql}
        ;
        insert into supabase_migrations.schema_migrations (version, name, statements) values (${values});
      `);
    } catch (error) {
      throw new Error(`migration ${version}_${name} failed: ${error.message}`, { cause: error });
    }
    console.error(`applied migration ${version}_${name}`);
  }
}

/** What the front asks behind the API's back; this port is known to the front alone. */
async function local(request, connection, letters) {
  const { pathname, searchParams } = new URL(request.url);
  if (pathname === "/_local/reload") {
    await connection.clearSchemaCache();
    return new Response(null, { status: 204 });
  }
  const letter = letters.last(searchParams.get("to"));
  return letter ? Response.json(letter) : Response.json({ message: "no letter to this address" }, { status: 404 });
}

async function start(config) {
  const connection = await connect(config);
  if (config.grants === "explicit") await connection.script(await text("explicit-grants.sql"));
  await migrate(connection, config.migrations);
  for (const script of config.scripts) await connection.script(`set local session authorization postgres; ${script}`);
  const letters = new Letters();
  const app = createApp(connection, config, letters);
  await app.init();
  await connection.introspect({ useCache: true });
  await connection.listen("pgrst", () => connection.clearSchemaCache());
  const fetch = (request) => {
    const { pathname } = new URL(request.url);
    return pathname.startsWith("/_local/") ? local(request, connection, letters) : app.fetch(request);
  };
  serve({ fetch, hostname: "127.0.0.1", port: 0 }, ({ port }) => process.stdout.write(`${JSON.stringify({ port })}\n`));
}

const STOP = "stop";
let config = {};
input.once("close", () => {
  if (config.temporary) rmSync(config.temporary, { recursive: true, force: true });
  process.exit(0);
});
input.on("line", (line) => line === STOP && process.exit(0));
config = await new Promise((resolve) => input.once("line", (line) => line === STOP || resolve(JSON.parse(line))));
try {
  if (config.mode === "prepare") {
    await prepare(config);
    process.exit(0);
  }
  await start(config);
} catch (error) {
  console.error(error);
  process.stdout.write(`${JSON.stringify({ error: error.message })}\n`, () => process.exit(1));
}
