#!/bin/sh
# Runs mean.sh on examples; fails when one of them is wrong.
failed=0
check() {
    expected=$1
    shift
    got=$(sh ./mean.sh "$@" 2>&1)
    if [ "$got" = "$expected" ]; then
        echo "ok    mean $*"
    else
        echo "FAIL  mean $*: expected $expected, got $got"
        failed=1
    fi
}
check 2.5 1 2 3 4
check 7 7 7
check 10 5 10 15
exit $failed
