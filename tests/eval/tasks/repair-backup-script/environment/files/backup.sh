#!/bin/bash
# Packs the directories below SOURCE: backup.sh SOURCE TARGET KEEP
source=$1
target=$2
keep=$3
stamp=${STAMP:-$(date +%Y%m%d-%H%M%S)}

cd $source
for directory in $(ls -d */); do
    name=$(basename $directory)
    tar -czf $target/$name-$stamp.tar.gz $name | grep -v Removing
    ls $target/$name-*.tar.gz | sort -r | tail -n $keep | xargs rm -f
done
