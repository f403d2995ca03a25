#!/bin/sh
# Prints the arithmetic mean of its arguments.
printf '%s\n' "$@" | awk '
{
    sum += $1
}
END {
    count = NR - 1
    printf "%g\n", sum / count
}'
