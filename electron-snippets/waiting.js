'use strict';

/** Wait for a promise, but no longer than `ms`; it goes on by itself. */
function atMost(ms, promise) {
  let timer;
  const limit = new Promise((resolve) => (timer = setTimeout(resolve, ms)));
  return Promise.race([promise, limit]).finally(() => clearTimeout(timer));
}

module.exports = { atMost };
