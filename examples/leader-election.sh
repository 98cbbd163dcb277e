#!/usr/bin/env bash
# Three candidates, one leader. The leader is killed, the next one resigns, and the third goes on leading when a node of
# the cluster dies: see leader-election.rs.
#
#   bash examples/leader-election.sh     exit code 0: there was never more than one, and never none for long
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/shared/cluster.bash" leader-election
start_cluster
ledger=$folder/ledger
touch "$ledger"

declare -A candidates
for name in red green blue; do
    start "$name" leader-election "$name" "$ledger"
    candidates[$name]=$started
done

who_leads() { tail -n 1 "$ledger" | cut -d' ' -f2; }
somebody_leads() { [[ -s $ledger ]]; }
another_leads() { [[ $(who_leads) != "$1" ]]; }

wait_until 20 "somebody leads" somebody_leads
first=$(who_leads)
echo "==> $first leads; it is killed, and its lease runs out"
kill_now "${candidates[$first]}"
# A TTL of 3 s, and room for a machine that is busy.
wait_until 10 "another one leads" another_leads "$first"

second=$(who_leads)
echo "==> $second leads; it is asked to stop"
kill -TERM "${candidates[$second]}"
# At once: nobody waits for a lease that was released.
wait_until 2 "the third one leads" another_leads "$second"
must_end 10 0 "${candidates[$second]}" "$second"
grep -q "$second resigns" "$folder/$second.log" || give_up "$second didn't resign"

third=$(who_leads)
echo "==> $third leads"
kill_leading_node
before=$(wc -l <"$ledger")
has_led_on() { (($(wc -l <"$ledger") > before + 80)); }
wait_until 20 "$third leads on" has_led_on
kill -TERM "${candidates[$third]}"
must_end 10 0 "${candidates[$third]}" "$third"

# Each of them led once, one after the other.
tokens_grow "$ledger"
terms=$(uniq "$ledger" | wc -l)
((terms == 3)) || give_up "expected three terms, found $terms: $(uniq -c "$ledger")"
echo "verdict: one leader at a time: $(uniq "$ledger" | cut -d' ' -f2 | tr '\n' ' ')"
