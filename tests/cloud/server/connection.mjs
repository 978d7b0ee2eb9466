// A connection that treats a request as a hosted project does.
//
// Left alone, @supabase/lite is kinder than the real thing: on the first request it grants ALL on every table of a
// schema with row-level security (undoing each REVOKE of the migrations), it knows no statement timeouts, a jsonb
// argument of an rpc arrives encoded twice, and timestamps leave in PostgreSQL's own spelling. `withContext` is its
// public seam; here it does what PostgREST does: one transaction, session user `authenticator`, the role of the token
// with that role's own settings, the claims.

import { PgliteConnection } from "@supabase/lite/pglite";
import { PostgresConnection } from "@supabase/lite/postgres";
import { sql } from "kysely";
import { asPostgrest } from "./errors.mjs";

class RolledBack extends Error {
  constructor(result) {
    super("rolled back on request");
    this.result = result;
  }
}

/** The settings a role was given by ALTER ROLE … SET: the hosted statement timeouts live there. */
async function settingsByRole(db) {
  const { rows } = await sql`
    select r.rolname as role,
           split_part(s.setting, '=', 1) as name,
           substr(s.setting, strpos(s.setting, '=') + 1) as value
      from pg_db_role_setting d
      join pg_roles r on r.oid = d.setrole
     cross join lateral unnest(d.setconfig) as s(setting)
     where d.setdatabase = 0 and r.rolname in ('anon', 'authenticated', 'service_role', 'authenticator')
  `.execute(db);
  const settings = new Map();
  for (const { role, name, value } of rows) settings.set(role, [...(settings.get(role) ?? []), [name, value]]);
  return settings;
}

// A hosted token also says these, and policies may ask; lite's tokens are shorter.
const CLAIMS_OF_A_PERSON = { aal: "aal1", is_anonymous: false };

const asHosted = (Base) =>
  class extends Base {
    #settings;

    normalizeDbError(error) {
      return asPostgrest(error);
    }

    async withContext(vars, run, options = {}) {
      if (options.transaction) {
        await this.#become(options.transaction, vars, options.rpc);
        return run(options.transaction);
      }
      try {
        return await this.kysely.transaction().execute(async (transaction) => {
          await this.#become(transaction, vars, options.rpc);
          const result = await run(transaction);
          if (options.forceRollback) throw new RolledBack(result);
          return result;
        });
      } catch (error) {
        if (error instanceof RolledBack) return error.result;
        throw error;
      }
    }

    /** One statement, so that a request costs one round trip more than its query, as with PostgREST. */
    async #become(transaction, vars, rpc) {
      this.#settings ??= await settingsByRole(this.kysely);
      const role = vars?.auth?.role || "anon";
      const claims = { ...(role === "authenticated" && CLAIMS_OF_A_PERSON), ...(vars?.auth?.jwt ?? { role }) };
      const wanted = [
        ["session_authorization", "authenticator"],
        ...(this.#settings.get("authenticator") ?? []),
        ...(this.#settings.get(role) ?? []),
        ["role", role],
        ["search_path", "public, extensions"],
        ["request.jwt.claims", JSON.stringify(claims)],
        ["request.jwt.claim.sub", String(claims.sub ?? "")],
        ["request.jwt.claim.role", role],
        ["response.status", ""],
        ["response.headers", ""],
      ];
      if (rpc) {
        wanted.push(["request.method", rpc.method], ["request.path", rpc.path]);
        wanted.push(["request.headers", JSON.stringify(rpc.requestHeaders ?? {})]);
        if (rpc.readOnly) wanted.push(["transaction_read_only", "on"]);
      }
      const calls = wanted.map(([name, value]) => sql`set_config(${name}, ${value}, true)`);
      await sql`select ${sql.join(calls)}`.execute(transaction);
    }
  };

// lite hands a jsonb value over already encoded; the driver's default would encode it a second time.
const alreadyEncoded = (value) => (typeof value === "string" ? value : JSON.stringify(value));
// As PostgreSQL writes a time into JSON: 2026-11-21T20:00:22.79+00:00
const isoTime = (value) => value.replace(" ", "T").replace(/([+-]\d\d)$/, "$1:00");
const OID = { json: 114, jsonb: 3802, timestamp: 1114, timestamptz: 1184 };

const type = (oid, serialize, parse) => ({ to: oid, from: [oid], serialize, parse });
const DRIVER_TYPES = {
  json: type(OID.json, alreadyEncoded, JSON.parse),
  jsonb: type(OID.jsonb, alreadyEncoded, JSON.parse),
  timestamp: type(OID.timestamp, String, isoTime),
  timestamptz: type(OID.timestamptz, String, isoTime),
};

class Hosted extends asHosted(PostgresConnection) {
  constructor(url) {
    super({ url, postgresOptions: { onnotice: () => {}, types: DRIVER_TYPES } });
  }

  /** Several statements in one go and in one implicit transaction, as `supabase db push` sends a migration. */
  async script(text) {
    await this.driver.unsafe(text).simple();
  }

  async listen(channel, heard) {
    await this.driver.listen(channel, heard);
  }
}

class HostedInProcess extends asHosted(PgliteConnection) {
  constructor(directory, { username }) {
    const serializers = { [OID.json]: alreadyEncoded, [OID.jsonb]: alreadyEncoded };
    const parsers = { [OID.timestamp]: isoTime, [OID.timestamptz]: isoTime };
    super({ url: directory, pgliteOptions: { username, serializers, parsers } });
  }

  async script(text) {
    await this.driver.exec(text);
  }

  async listen(channel, heard) {
    await this.driver.listen(channel, heard);
  }
}

const SUPERUSER = "supabase_admin";

export async function connect({ engine, database }) {
  return engine === "postgres" ? new Hosted(database) : new HostedInProcess(database, { username: SUPERUSER });
}

/** A new PGlite directory has one user, `postgres`, which must not stay the superuser: it is the developer's role. */
export async function renameBootstrapUser(directory) {
  const bootstrap = new HostedInProcess(directory, { username: "postgres" });
  await bootstrap.script(`
    create role stand_in superuser;
    set session authorization stand_in;
    alter role postgres rename to ${SUPERUSER};
  `);
  await bootstrap.close();
  const renamed = new HostedInProcess(directory, { username: SUPERUSER });
  await renamed.script("drop role stand_in");
  await renamed.close();
}
