# Four sockets of one station offer more than its queue in the medium takes; then what the driver and the scenario refuse.

radios 3
refused() {
    word=$1 status=0
    shift
    wakeai medium "$@" >/tmp/refused 2>&1 || status=$?
    echo "$word $status $(tr '\n' ' ' </tmp/refused)"
}
refused BUFFER /air.toml --set access_point.buffer=200
refused QUEUE /air.toml --set stations.sta.queue=100
refused HOST_QUEUE /air.toml --set stations.sta.host_queue=tsq
medium /air.toml --json
refused BUSY /air.toml
g54="supported_rates=60 90 120 180 240 360 480 540"
access_point wlan0 air 1 "$g54" "basic_rates=60 120 240 540"
ip addr add 10.0.0.1/24 dev wlan0
station phy1 a air 10.0.0.2 key_mgmt=NONE
joined a
iw dev wlan0 set bitrates legacy-2.4 54
ip netns exec a iw dev wlan1 set bitrates legacy-2.4 54
ip netns exec a ping -c 1 10.0.0.1 >/dev/null
iperf3 -s -p 5201 --one-off --json >/tmp/a.json &
sleep 0.3
ip netns exec a iperf3 -c 10.0.0.1 -p 5201 -u -b 20M -P 4 -l 1472 -t 2 --json >/tmp/ca.json
sleep 1
grep Udp: /proc/net/snmp
printf 'SENT '; tr -d '\n' </tmp/ca.json; echo
printf 'GOT '; tr -d '\n' </tmp/a.json; echo
medium_ends
