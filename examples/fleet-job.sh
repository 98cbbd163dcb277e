#!/usr/bin/env bash
# Five machines start a nightly job at the same minute, and one of them does it. Then the one that does it dies in the
# middle, and then the node that leads the cluster: see fleet-job.rs.
#
#   bash examples/fleet-job.sh     exit code 0: the report of each day was written once, by one machine at a time
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/shared/cluster.bash" fleet-job
start_cluster
ledger=$folder/report.txt

at_once() {
    local day=$1 machine
    machines=()
    for machine in 1 2 3 4 5; do
        start "$day-machine-$machine" fleet-job "$ledger" "$day"
        machines+=("$started")
    done
}
is_done() { grep -q "^$1 [0-9]* done\$" "$ledger"; }

# of_day DAY PAGES: so many pages in all, one end, and tokens that never go back: nobody wrote between two others.
of_day() {
    grep "^$1 " "$ledger" | cut -d' ' -f2- >"$folder/of-day"
    (($(grep -c page "$folder/of-day") == $2)) || give_up "$1 has other pages than expected: $(<"$ledger")"
    (($(grep -c done "$folder/of-day") == 1)) || give_up "$1 wasn't done exactly once: $(<"$ledger")"
    tokens_grow "$folder/of-day"
}

echo "==> monday: five machines at once"
at_once monday
for machine in "${machines[@]}"; do must_end 30 0 "$machine" "a machine"; done
(($(cat "$folder"/monday-*.log | grep -c 'does monday under') == 1)) || give_up "monday was begun more than once"
of_day monday 5

echo "==> tuesday: the machine that does it dies in the middle"
at_once tuesday
wait_until 10 "a page is written" grep -q '^tuesday .*page-2' "$ledger"
for machine in 1 2 3 4 5; do
    if grep -q 'does tuesday' "$folder/tuesday-machine-$machine.log"; then
        kill_now "${machines[machine - 1]}"
        echo "==> killed machine-$machine"
    fi
done
written=$(grep -c '^tuesday .*page' "$ledger")
# Cron comes again, and finds the lock free once the dead machine's lease has run out.
for ((minute = 1; minute <= 40; minute++)); do
    start "tuesday-minute-$minute" fleet-job "$ledger" tuesday
    must_end 30 0 "$started" "the job"
    if is_done tuesday; then break; fi
    sleep 0.5
done
of_day tuesday $((written + 5))

echo "==> wednesday: the node that leads the cluster dies, and the job goes on"
start wednesday fleet-job "$ledger" wednesday
job=$started
wait_until 10 "a page is written" grep -q '^wednesday .*page-1' "$ledger"
kill_leading_node
must_end 30 0 "$job" "the job"
of_day wednesday 5
echo "verdict: each report was written once, by one machine at a time"
