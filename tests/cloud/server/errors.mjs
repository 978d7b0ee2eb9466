// A database error as PostgREST answers it. lite maps a few SQLSTATEs itself and answers every other one (a violated
// check, a RAISE, a timeout) with status 500 and the code "SUP", which a client cannot tell apart.

// https://docs.postgrest.org/en/latest/references/errors.html#http-status-codes
const EXACT = {
  23503: 409, 23505: 409, 25006: 405, 42883: 404, "42P01": 404, "42P17": 500, 53400: 500, "57P01": 503, P0001: 400,
};
const BY_CLASS = {
  "08": 503, "09": 500, "0L": 403, "0P": 403, 25: 500, 28: 403, "2D": 500, 38: 500, 39: 500, "3B": 500, 40: 500,
  53: 503, 54: 500, 55: 500, 57: 500, 58: 500, F0: 500, HV: 500, P0: 500, XX: 500,
};
// Left to lite: the status of 42501 depends on the role, PT### and PGRST are RAISE's own ways to choose an answer.
const LEFT_ALONE = /^(42501|PT...|PGRST)$/;

const statusOf = (code, message) =>
  code === "21000" ? (message.includes("WHERE") ? 400 : 500) : (EXACT[code] ?? BY_CLASS[code.slice(0, 2)] ?? 400);

/** lite lets a function choose status and body by raising SQLSTATE 'PGRST'; any answer can be given through that. */
const answer = (status, body) =>
  Object.assign(new Error(JSON.stringify(body)), { code: "PGRST", detail: JSON.stringify({ status, headers: {} }) });

export function asPostgrest(error) {
  const { code, message, detail, hint } = error ?? {};
  if (typeof code !== "string" || LEFT_ALONE.test(code)) return error;
  if (/^(CONN|ECONN|EPIPE)/.test(code)) {
    const told = "Database connection error. Retrying the connection.";
    return answer(503, { code: "PGRST001", message: told, details: message, hint: null });
  }
  if (!/^[0-9A-Z]{5}$/.test(code)) return error;
  return answer(statusOf(code, message), { code, message, details: detail ?? null, hint: hint ?? null });
}
