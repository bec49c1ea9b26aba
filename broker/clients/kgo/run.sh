#!/usr/bin/env bash
# Runs franz-go's own tests, those of tests.txt, against a node, once as they are and once with
# connections that die at random.
# usage: broker/clients/kgo/run.sh HOST:PORT
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
node=$1
list=$PWD/tests.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

module=$(go list -m -f '{{.Dir}}' github.com/twmb/franz-go)
[ -n "$module" ] || { go mod download github.com/twmb/franz-go; module=$(go list -m -f '{{.Dir}}' github.com/twmb/franz-go); }
(cd "$module/pkg/kgo" && go test -c -o "$work/kgo.test" .)

grep -v '^#' "$list" | sort >"$work/wanted"
{ cat "$work/wanted"; sed -n 's/^# [^:]*: \(Test\)/\1/p' "$list" | tr ' ' '\n'; } | sort >"$work/known"
"$work/kgo.test" -test.list . | grep '^Test' | sort >"$work/all"
diff "$work/known" "$work/all" || { echo "tests.txt does not name the tests of this version of franz-go"; exit 1; }

# pass NAME [VARIABLE=VALUE ...]: runs the list; every test of it must say that it has passed.
pass() {
  local name=$1 code=0
  shift
  (cd "$work" && env "$@" KGO_SEEDS="$node" KGO_TEST_RF=1 KGO_TEST_RECORDS="${KGO_TEST_RECORDS:-20000}" KGO_LOG_LEVEL=none \
    ./kgo.test -test.count=1 -test.timeout 190s -test.v -test.run "^($(paste -sd'|' "$work/wanted"))\$" >"$name.log" 2>&1) || code=$?
  sed -n 's/^--- PASS: \([^ ]*\).*/\1/p' "$work/$name.log" | sort >"$work/passed"
  if [ "$code" -ne 0 ] || ! diff "$work/wanted" "$work/passed"; then
    tail -n 200 "$work/$name.log"
    return 1
  fi
  echo "kgo, $name: $(wc -l <"$work/passed") passed, 0 failed"
}

pass plain
pass chaos KGO_TEST_CHAOS=1
