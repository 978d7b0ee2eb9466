'use strict';

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { SidecarError } = require('./errors.js');

const NAME = 'xiaobai-memory';

/**
 * The command that starts the sidecar: the user's setting, else the one bundled with the app, else the one on PATH.
 *
 * A setting that points nowhere is an error and not a reason to look elsewhere: otherwise a typing error would quietly
 * start another program.
 *
 * @param {{ setting?: string | string[], resourcesPath?: string, env?: NodeJS.ProcessEnv, platform?: string }} [where]
 *   `setting`: path of the executable, or a whole command; `resourcesPath`: `process.resourcesPath` of a packaged app
 * @returns {string[]} executable and arguments
 */
function findSidecar({ setting, resourcesPath, env = process.env, platform = process.platform } = {}) {
  if (Array.isArray(setting) && setting.length > 0) return [...setting];
  if (typeof setting === 'string' && setting.trim() !== '') {
    if (isExecutable(setting)) return [setting, 'serve'];
    throw missing(`the configured sidecar ${setting} does not exist or cannot be executed`);
  }
  const file = platform === 'win32' ? `${NAME}.exe` : NAME;
  const bundled = resourcesPath ? [path.join(resourcesPath, NAME, file), path.join(resourcesPath, file)] : [];
  const candidates = [...bundled, ...foldersOf(env, platform).map((folder) => path.join(folder, file))];
  const found = candidates.find(isExecutable);
  if (found === undefined) throw missing(`${file} was found neither in the app nor on PATH`);
  return [found, 'serve'];
}

/** PATH, then where installers put programs that an app started from a dock or a menu does not have on its PATH. */
function foldersOf(env, platform) {
  const name = platform === 'win32' ? Object.keys(env).find((key) => key.toUpperCase() === 'PATH') : 'PATH';
  const listed = (env[name] ?? '').split(path.delimiter);
  const home = env.HOME ?? env.USERPROFILE ?? os.homedir();
  const usual = platform === 'win32' ? [] : ['/opt/homebrew/bin', '/usr/local/bin'];
  // A relative entry would mean the current folder, which the user did not choose.
  return [...listed, path.join(home, '.local', 'bin'), ...usual].filter((folder) => path.isAbsolute(folder));
}

function isExecutable(file) {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}

function missing(message) {
  return new SidecarError('sidecar_not_found', message, {
    hint: `Install ${NAME}, bundle it under resources/${NAME}/, or set the path of its executable.`,
  });
}

module.exports = { findSidecar };
