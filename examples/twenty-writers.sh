#!/usr/bin/env bash
# Twenty processes append to one file through a counter that two writers at once would corrupt. Each append runs
# under `kunci exec`, and meanwhile the node is killed with -9 and started again, several times. At the end the
# counter must be exact and the fencing tokens in the file must strictly grow.
#
#   bash examples/twenty-writers.sh                  exit code 0: nothing was lost, doubled or out of order
#   bash examples/twenty-writers.sh --without-lock   the same without kunci, to see what it prevents: exit code 1
#
# Needs bash, coreutils and either `kunci` on the PATH or cargo to build it.
set -euo pipefail

writers=20 rounds=10 kills=5 lock=yes
while (($# > 0)); do
    case $1 in
    --writers) writers=$2 && shift 2 ;;
    --rounds) rounds=$2 && shift 2 ;;
    --kills) kills=$2 && shift 2 ;;
    --without-lock) lock=no && shift ;;
    *) echo "usage: $0 [--writers N] [--rounds N] [--kills N] [--without-lock]" >&2 && exit 2 ;;
    esac
done
readonly writers rounds kills lock total=$((writers * rounds))

if ! command -v kunci >/dev/null; then
    root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
    echo "==> cargo build --release (once; a few minutes)"
    (cd "$root" && cargo build --release --locked --package kunci-cli)
    PATH=${CARGO_TARGET_DIR:-$root/target}/release:$PATH
fi

folder=$(mktemp -d)
export LEDGER=$folder/ledger
: >"$LEDGER"
node=

# The protected work: read the last number, take a moment, append the next one. The file is the counter.
cat >"$folder/append" <<'APPEND'
read -r last _ < <(tail -n 1 "$LEDGER") || last=0
sleep 0.00$((RANDOM % 8 + 1))
echo "$((last + 1)) ${KUNCI_FENCING_TOKEN:-0} $1" >>"$LEDGER"
APPEND

clean_up() {
    local code=$?
    trap - EXIT
    # Only what this script started: its writers, then its node.
    local writer
    for writer in "${pids[@]}"; do kill "$writer" 2>/dev/null || true; done
    [[ -z $node ]] || kill -9 "$node" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$folder"
    exit "$code"
}
pids=()
trap clean_up EXIT
trap 'exit 130' INT TERM

give_up() {
    tail -n 20 "$folder"/*.log >&2 || true
    echo "error: $1" >&2
    exit 1
}

# Starts the node and waits until it serves. Fails when the node ends or takes more than twenty seconds.
start_node() {
    kunci server --data "$folder/data" --http "127.0.0.1:$port" --native 127.0.0.1:0 --peer 127.0.0.1:0 2>>"$folder/node.log" &
    node=$!
    local try
    for ((try = 0; try < 200; try++)); do
        if kunci status writers/ledger >/dev/null 2>&1; then return 0; fi
        kill -0 "$node" 2>/dev/null || break
        sleep 0.1
    done
    kill -9 "$node" 2>/dev/null || true
    return 1
}

# A port below those that the kernel hands out to clients: a client could sit on one of those while no node runs.
first_start() {
    for ((port = 20000 + $$ % 10000; ; port++)); do
        export KUNCI_URL=http://127.0.0.1:$port
        if start_node; then return 0; fi
        if ! grep -q 'listen for HTTP' "$folder/node.log" || ((port > 30050)); then
            give_up "the node doesn't start"
        fi
        rm -f "$folder/node.log"
    done
}

# One writer: its rounds one after the other. A round that ended otherwise than well is asked after in the file:
# the work either is in it or wasn't done, and then it is done again, a few times.
write() {
    local me=$1 round code tries
    for ((round = 1; round <= rounds; round++)); do
        tries=0
        until grep -q " writer-$me/$round\$" "$LEDGER"; do
            if ((++tries > 20)); then
                echo "writer-$me/$round" >"$folder/gave-up"
                return 1
            fi
            code=0
            if [[ $lock == yes ]]; then
                kunci exec writers/ledger --ttl 5s --owner "writer-$me" -- \
                    bash "$folder/append" "writer-$me/$round" 2>>"$folder/exec.log" || code=$?
            else
                bash "$folder/append" "writer-$me/$round"
            fi
            ((code == 0)) || echo "writer-$me/$round: ended with $code" >>"$folder/exec.log"
        done
    done
}

if [[ $lock == yes ]]; then
    first_start
    echo "==> a node on $KUNCI_URL; $writers writers append $rounds times each"
else
    echo "==> no lock; $writers writers append $rounds times each"
fi
for ((me = 1; me <= writers; me++)); do
    write "$me" &
    pids+=($!)
done

# Kills the node whenever another share of the work is done.
killed=0
lines() { wc -l <"$LEDGER"; }
while [[ $lock == yes ]] && ((killed < kills)); do
    if (($(lines) < total * (killed + 1) / (kills + 1))); then
        [[ ! -e $folder/gave-up ]] || give_up "$(<"$folder/gave-up") failed too often"
        sleep 0.02
        continue
    fi
    kill -9 "$node"
    wait "$node" 2>/dev/null || true
    killed=$((killed + 1))
    echo "==> killed the node with -9 at line $(lines) of $total"
    start_node || give_up "the node doesn't start again"
done
for writer in "${pids[@]}"; do
    wait "$writer" || give_up "a writer failed too often"
done
pids=()

# The verdict. Every line's number is the line's own number, every piece of work is there once, tokens grow.
faults=0
number=0 token_before=0
while read -r counted token who; do
    number=$((number + 1))
    if ((counted != number)); then
        ((faults += 1, faults > 3)) || echo "fault: line $number says $counted ($who)"
    fi
    if [[ $lock == yes ]] && ((token <= token_before)); then
        ((faults += 1, faults > 3)) || echo "fault: line $number has token $token after $token_before ($who)"
    fi
    token_before=$token
done <"$LEDGER"
twice=$(cut -d' ' -f3 "$LEDGER" | sort | uniq -d | wc -l)
if ((number != total || twice > 0)); then
    faults=$((faults + 1))
    echo "fault: $number lines, expected $total; done twice: $twice"
fi

if ((faults > 0)); then
    echo "verdict: corrupt, $faults faults"
    [[ $lock == no ]] || tail -n 5 "$folder/exec.log" "$folder/node.log" 2>/dev/null || true
    exit 1
fi
if [[ $lock == no ]]; then
    echo "verdict: exact by luck"
    exit 0
fi
echo "verdict: exact: $number appends, tokens strictly grow up to $token_before, the node was killed $killed times"
