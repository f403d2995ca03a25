#!/bin/bash
set -e
cat >backup.sh <<'SH'
#!/bin/bash
# Packs the directories below SOURCE: backup.sh SOURCE TARGET KEEP
set -u
shopt -s nullglob
source=${1:-}
target=${2:-}
keep=${3:-}
stamp=${STAMP:-$(date +%Y%m%d-%H%M%S)}

if [ ! -d "$source" ] || [ -z "$target" ] || ! [[ $keep =~ ^[0-9]+$ ]] || [ "$keep" -eq 0 ]; then
    echo "usage: backup.sh SOURCE TARGET KEEP" >&2
    exit 2
fi
mkdir -p "$target" || exit 1
code=0
digits='[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]-[0-9][0-9][0-9][0-9][0-9][0-9]'
for directory in "$source"/*/; do
    name=$(basename "$directory")
    archive=$target/$name-$stamp.tar.gz
    if ! tar -czf "$archive" -C "$source" -- "$name"; then
        rm -f "$archive"
        code=1
        continue
    fi
    # A glob is sorted by name, so the oldest stamps come first.
    archives=("$target/$name-"$digits.tar.gz)
    for ((number = 0; number < ${#archives[@]} - keep; number++)); do
        rm -f "${archives[number]}"
    done
done
exit $code
SH
