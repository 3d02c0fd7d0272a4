# Read by static.sh and android.sh (`. /lib.sh`) in the guest: how a check reports, two stations with a cable between them,
# and a bounded connection.
set -eu
trap 'status=$?; [ $status = 0 ] || { echo "guest: a check failed"; cat $logs 2>/dev/null; }' EXIT
# What is printed where a check fails.
logs=/tmp/*.log

passed() { echo "guest: $*"; }
fail() { echo "guest: FAILED: $*"; exit 1; }
# until_is WHAT COMMAND...: repeats the command for at most two minutes.
until_is() {
  what=$1; shift
  end=$(($(date +%s) + 120))
  while [ "$(date +%s)" -lt "$end" ]; do
    if "$@"; then return; fi
    sleep 0.5
  done
  fail "waited in vain until $what"
}

# Runs a command at the other station. In the background nsenter is written out, so that $! is the program and not a
# subshell.
there() { nsenter -t "$other" -n "$@"; }
# cable INTERFACE: two stations, which are namespaces. This one has the interface and 10.77.0.1, the other one $peer and
# 10.77.0.2; the process $other keeps its namespace.
cable() {
  unshare -n sleep 100000 & other=$!
  sleep 1
  ip link add name "$1" type veth
  peer=$(ip -o link | sed -n 's/^[0-9]*: \(veth[0-9]*\)@.*/\1/p')
  ip link set "$peer" netns "$other"
  there ip link set lo up
  ip address add 10.77.0.1/24 broadcast 10.77.0.255 dev "$1"
  there ip address add 10.77.0.2/24 broadcast 10.77.0.255 dev "$peer"
  ip link set "$1" up
  there ip link set "$peer" up
}

# bound_and_monitor WAKEAI...: busybox sends to the other station; `top` has to show the bound, and `monitor` to write samples.
# WAKEAI... is the program's name, and what runs it. Sets $samples.
bound_and_monitor() {
  # The receiver has to have an input: at its end it would close the connection.
  sleep 100 | nsenter -t "$other" -n nc -l -p 5201 >/dev/null & receiver=$!
  sleep 1
  "$@" monitor --json --port 5201 --duration 20s >/tmp/monitor.json 2>/tmp/monitor.log & monitor=$!
  timeout 15 nc 10.77.0.2 5201 </dev/zero & sender=$!
  until_is "the connection is bounded" bounded "$@"
  wait $monitor || fail "monitor ended with $?: $(cat /tmp/monitor.log)"
  samples=$(wc -l </tmp/monitor.json)
  [ "$samples" -gt 100 ] || fail "monitor: $(cat /tmp/monitor.json /tmp/monitor.log)"
  wait $sender || true
  kill $receiver 2>/dev/null || true
}
bounded() {
  # The connections, without the agents.
  "$@" top --once --json --port 5201 2>/tmp/top.log | sed 's/"agents":.*//' >/tmp/top.json
  grep -q '"algorithm":"wakeai_cubic"' /tmp/top.json && grep -q '"ceiling":5' /tmp/top.json
}
