# A cluster of three nodes on this machine, for the scripts in examples/. To be sourced, with the example's name:
#
#   source "$(dirname "${BASH_SOURCE[0]}")/shared/cluster.bash" fleet-job
#
# Then `start_cluster` starts it and names it in KUNCI_URL and KUNCI_ENDPOINTS; $folder is a temporary folder. When the
# script ends, so does everything that it started through `start` or `start_cluster`.
#
# Needs bash, coreutils, and either `kunci` and the example on the PATH or cargo to build them.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
if ! command -v kunci >/dev/null || ! command -v "$1" >/dev/null; then
    echo "==> cargo build (once; a few minutes)"
    (cd "$root" && cargo build --locked --package kunci-cli --package kunci-client --bin kunci --example "$1")
    target=${CARGO_TARGET_DIR:-$root/target}
    PATH=$target/debug:$target/debug/examples:$PATH
fi

folder=$(mktemp -d)
cluster=
# Whoever runs this may have settings of his own; they aren't for these nodes.
unset "${!KUNCI_@}"

clean_up() {
    local code=$? node pid
    trap - EXIT
    for pid in $(jobs -pr); do [[ $pid == "$cluster" ]] || kill_now "$pid"; done
    # A node that is stopped can't end.
    for node in 0 1 2; do kill -CONT "$(node_pid "$node")" 2>/dev/null || true; done
    if [[ -n $cluster ]]; then
        kill -TERM "$cluster" 2>/dev/null || true
    fi
    wait 2>/dev/null || true
    rm -rf "$folder"
    exit "$code"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

give_up() {
    tail -n 20 "$folder"/*.log "$folder"/nodes/*/log >&2 2>/dev/null || true
    echo "error: $1" >&2
    exit 1
}

# wait_until SECONDS WHAT COMMAND…: asks the command again and again until it succeeds.
wait_until() {
    local seconds=$1 what=$2
    local -i end=$((${EPOCHREALTIME/./} + seconds * 1000000))
    shift 2
    until "$@" >/dev/null 2>&1; do
        ((${EPOCHREALTIME/./} < end)) || give_up "not so within $seconds s: $what"
        sleep 0.05
    done
}

# start NAME COMMAND…: in the background; its words go to $folder/NAME.log, its process id is $started.
start() {
    local name=$1
    shift
    "$@" >"$folder/$name.log" 2>&1 &
    started=$!
}

# must_end SECONDS CODE PROCESS WHAT: waits for the end of what was started, and for that exit code.
must_end() {
    local code=0
    wait_until "$1" "$4 ends" has_ended "$3"
    wait "$3" || code=$?
    ((code == $2)) || give_up "$4 ended with $code, expected $2"
}
has_ended() { ! kill -0 "$1" 2>/dev/null; }

# Says nothing of it, as the shell would.
kill_now() {
    kill -9 "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}

node_pid() { cat "$folder/nodes/node-$1/pid" 2>/dev/null; }

# The index of the node that leads, from 0, as any node tells it.
leader() {
    local node url http
    for node in 0 1 2; do
        url=http://127.0.0.1:$((port + 10 * node))
        http=$(kunci cluster status --url "$url" 2>/dev/null | grep -w leader | grep -o '127[0-9.]*:[0-9]*' | head -n 1)
        if [[ -n $http ]]; then
            echo $(((${http##*:} - port) / 10))
            return
        fi
    done
    return 1
}

kill_leading_node() {
    local node
    wait_until 20 "a node leads" leader
    node=$(leader)
    kill -9 "$(node_pid "$node")"
    echo "==> killed node-$node, which led the cluster"
}

# Below the ports that the kernel hands out to clients.
start_cluster() {
    for ((port = 20000 + $$ % 9000; ; port += 30)); do
        : >"$folder/cluster.log"
        kunci dev-cluster --data "$folder/nodes" --base-port "$port" >"$folder/cluster.log" 2>&1 &
        cluster=$!
        until grep -q 'is up' "$folder/cluster.log"; do
            if has_ended "$cluster"; then break; fi
            sleep 0.05
        done
        if ! has_ended "$cluster"; then break; fi
        if ! grep -q 'port [0-9]* is needed' "$folder/cluster.log" || ((port > 30000)); then
            give_up "the cluster doesn't start"
        fi
        rm -rf "$folder/nodes"
    done
    export KUNCI_URL=http://127.0.0.1:$port
    export KUNCI_ENDPOINTS=127.0.0.1:$((port + 1)),127.0.0.1:$((port + 11)),127.0.0.1:$((port + 21))
    echo "==> a cluster of three nodes: $KUNCI_ENDPOINTS"
}

# tokens_grow FILE: the fencing tokens, the first word of each line, never go back.
tokens_grow() {
    cut -d' ' -f1 "$1" | sort --check=quiet -n || give_up "somebody wrote under an older token: $(cat "$1")"
}
