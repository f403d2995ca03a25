#!/usr/bin/env node
'use strict';
// Runs the program of the package for this platform. Installed as the command `nuncio`.

const { optionalDependencies, version } = require('../package.json');

const name = `@nuncio/${process.platform}-${process.arch}`;
const [, , ...args] = process.argv;

function fail(message) {
  console.error(`nuncio: ${message}`);
  process.exit(1);
}

function program() {
  try {
    return require.resolve(`${name}/bin/nuncio`);
  } catch {
    const packages = Object.keys(optionalDependencies);
    if (!packages.includes(name)) {
      fail(`no package for ${process.platform}-${process.arch}; there are ${packages.join(', ')}`);
    }
    if (process.platform === 'linux' && !process.report.getReport().header.glibcVersionRuntime) {
      fail(`the package ${name} requires glibc, which this system does not have`);
    }
    // Lock files from other platforms, --omit=optional and --no-optional omit it.
    return fail(`the package ${name} is not installed\n  npm install ${name}@${version}    (with -g if nuncio is installed globally)`);
  }
}

const file = program();
if (process.execve) {
  // Replaces Node, so that editors talk to nuncio itself.
  process.execve(file, [file, ...args], process.env);
}

const child = require('node:child_process').spawn(file, args, { stdio: 'inherit' });
child.on('error', (error) => fail(`cannot start ${file}: ${error.message}`));
// A terminal sends these to nuncio itself.
const terminal = [0, 1, 2].some((descriptor) => require('node:tty').isatty(descriptor));
for (const signal of ['SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGHUP']) {
  const ignored = terminal && ['SIGINT', 'SIGQUIT'].includes(signal);
  process.on(signal, () => ignored || child.kill(signal));
}
child.on('exit', (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
