#!/bin/bash
# Prints a user as JSON: export.sh KEY
cd "$(dirname "$0")/.." || exit 1
exec python3 -c 'import json, sys; from crm.people import fetch_usr as fetch; print(json.dumps(fetch(int(sys.argv[1]))))' "$1"
