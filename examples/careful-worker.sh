#!/usr/bin/env bash
# A worker is frozen for longer than its lease, as a stalled machine would be, and wakes up when another one works. Then
# every server falls silent. Both stop by themselves: see careful-worker.rs.
#
#   bash examples/careful-worker.sh     exit code 0: nobody worked after its lock was lost
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/shared/cluster.bash" careful-worker
start_cluster
ledger=$folder/ledger
touch "$ledger"

steps() { grep -c " $1 " "$ledger" || true; }
has_worked() { (($(steps "$1") > 5)); }

start one careful-worker one "$ledger"
one=$started
wait_until 20 "one works" has_worked one
start two careful-worker two "$ledger"
two=$started

echo "==> one is frozen"
kill -STOP "$one"
wait_until 20 "two works" has_worked two
steps_of_one=$(steps one)
echo "==> two has the lock; one wakes up"
kill -CONT "$one"
must_end 5 3 "$one" "one"
grep -q 'one stops: the lock is lost' "$folder/one.log" || give_up "one doesn't say why it stopped"
(($(steps one) == steps_of_one)) || give_up "one has worked under a lock that two had: $(<"$ledger")"

echo "==> every server falls silent"
for node in 0 1 2; do kill -STOP "$(node_pid "$node")"; done
# No server has told it anything: its own deadline has, 3 s after the last renewal at most.
must_end 6 3 "$two" "two"
grep -q 'two starts nothing new' "$folder/two.log" || give_up "two has seen no doubt before the loss"
for node in 0 1 2; do kill -CONT "$(node_pid "$node")"; done

start three careful-worker three "$ledger"
wait_until 30 "three works" has_worked three
tokens_grow "$ledger"
echo "verdict: nobody worked after its lock was lost"
