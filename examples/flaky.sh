#!/bin/sh
# A coffee machine: its water needs 1.5 seconds to get hot, and until then it fails.
#
#     stagger run -d 300ms -n 8 -- examples/flaky.sh
#
# `stagger run` tells each attempt how long the run has lasted. So nothing runs between attempts, and nothing is left.
set -u

heat=$((20 + ${STAGGER_ELAPSED_MS:-0} / 20))

if [ "$heat" -lt 95 ]; then
    echo "flaky.sh: the water has $heat °C, coffee needs 95 °C" >&2
    exit 75 # EX_TEMPFAIL: worth another attempt
fi

cat <<'CUP'
   ) ) )
  ( ( (
 .------.
 |      |)
 '------'
CUP
