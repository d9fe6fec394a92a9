#!/bin/sh
# A job that fails for a real reason: it needs a lock that a backup holds for the first 1.5 seconds.
#
#     stagger run -d 300ms -n 8 -- examples/flaky.sh
#
# All attempts of one run share a directory named after their parent process, so concurrent runs do not collide. The
# directory is removed however the run ends.
set -u

parent=$PPID
home=${TMPDIR:-/tmp}/stagger-flaky-$parent
lock=$home/lock

backup() {
    sleep 1.5 2>/dev/null || sleep 2
    rmdir "$lock"
    # If the job never gets the lock, remove the directory when its parent has ended.
    while [ -d "$home" ] && kill -0 "$parent"; do
        sleep 1
    done
    rm -rf "$home"
}

# The first attempt finds no directory: a backup begins.
if mkdir "$home" 2>/dev/null; then
    mkdir "$lock"
    backup </dev/null >/dev/null 2>&1 &
fi

# mkdir either makes the directory or fails, so exactly one process has the lock.
if ! mkdir "$lock" 2>/dev/null; then
    echo "flaky.sh: the backup holds the lock" >&2
    exit 75 # EX_TEMPFAIL: worth another attempt
fi

echo "flaky.sh: done, under the lock"
rmdir "$lock" "$home"
