if grep -q 'echo secret'; then echo 'no secrets' >&2; exit 2; fi
