#!/usr/bin/env bash
# Copies markdown-it for browsers, and the licences of what it contains, from npm into this
# directory. A new version needs its number and the sha256 of its file here.
set -euo pipefail

VERSION=15.0.3
SHA256=d5432491790141da046b1197353705db03264f40b5727f3b4b591f5aba193e30
CONTAINS="markdown-it entities linkify-it mdurl punycode.js uc.micro"

here=$(cd "$(dirname "$0")" && pwd)
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
npm install --ignore-scripts --no-audit --no-fund --loglevel=error "markdown-it@$VERSION"

file=node_modules/markdown-it/dist/browser/markdown-it.esm.min.mjs
echo "$SHA256  $file" | sha256sum --check --quiet
cp "$file" "$here/markdown-it.js"
for name in $CONTAINS; do
  version=$(node -p "require('./node_modules/$name/package.json').version")
  printf '%s %s\n\n' "$name" "$version"
  cat node_modules/"$name"/LICENSE*
  printf '\n'
done >"$here/markdown-it.LICENSE"
