#!/usr/bin/env bash
# Twelve tellers move money between three accounts, in circles both ways, each under the locks of both accounts. Nobody
# waits for ever and no money is lost: see several-locks.rs.
#
#   bash examples/several-locks.sh     exit code 0: every balance is exact
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/shared/cluster.bash" several-locks
start_cluster
bank=$folder/bank
mkdir "$bank"
for account in alice bob carol; do echo 1000 >"$bank/$account"; done

# teller FROM TO AMOUNT: five times.
teller() {
    local round
    for round in 1 2 3 4 5; do several-locks "$bank" "$1" "$2" "$3"; done
}

echo "==> twelve tellers, sixty transfers"
tellers=()
for turn in 1 2; do
    for pair in 'alice bob 1' 'bob alice 2' 'bob carol 4' 'carol bob 8' 'carol alice 16' 'alice carol 32'; do
        read -r from to amount <<<"$pair"
        start "teller-$turn-$from-$to" teller "$from" "$to" "$amount"
        tellers+=("$started")
    done
done
for teller in "${tellers[@]}"; do must_end 120 0 "$teller" "a teller"; done

# Ten transfers of each kind.
balance() {
    local found
    found=$(<"$bank/$1")
    ((found == $2)) || give_up "$1 has $found, expected $2"
    echo "$1: $found"
}
balance alice $((1000 + 10 * (-1 + 2 + 16 - 32)))
balance bob $((1000 + 10 * (1 - 2 - 4 + 8)))
balance carol $((1000 + 10 * (4 - 8 - 16 + 32)))

echo "==> somebody keeps bob's account; the deadline is for both locks, and alice's isn't kept after it"
start keeper kunci exec accounts/bob -- sleep 60
bob_is_kept() { kunci status accounts/bob | grep -q 'held'; }
wait_until 10 "bob's account is kept" bob_is_kept
start late several-locks "$bank" alice bob 5
must_end 30 1 "$started" "the transfer"
alice_is_free() { ! kunci acquire accounts/alice --try 2>&1 | grep -q 'held by'; }
wait_until 5 "alice's account is free" alice_is_free
balance alice 850
echo "verdict: sixty transfers, every balance is exact"
