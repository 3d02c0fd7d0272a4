# UDP that saturates the channel at 54 Mbit/s, from 1, 6 and 12 stations. No supplicant and no broadcast is needed for it:
# iw associates the stations, and the addresses of their neighbours are told. So a guest with twelve stations is fast.

radios 13
medium /air.toml --json
access_point wlan0 air 1 "supported_rates=60 90 120 180 240 360 480 540" "basic_rates=60 120 240 540"
ip addr add 10.0.0.1/24 dev wlan0
for number in 1 2 3 4 5 6 7 8 9 10 11 12; do
    name=s$number interface=wlan$number
    address=$(cat "/sys/class/net/$interface/address")
    ip neigh add "10.0.0.1$number" lladdr "$address" dev wlan0
    ip netns add "$name"
    iw phy "phy$number" set netns name "$name"
    ip -n "$name" link set "$interface" up
    ip -n "$name" addr add "10.0.0.1$number/24" dev "$interface"
    ip -n "$name" neigh add 10.0.0.1 lladdr "$(cat /sys/class/net/wlan0/address)" dev "$interface"
    ip netns exec "$name" iw dev "$interface" connect air 2412
    until ip netns exec "$name" iw dev "$interface" link | grep -q Connected; do sleep 0.02; done
    ip netns exec "$name" iw dev "$interface" set bitrates legacy-2.4 54
done
# A socket that nobody reads: the interface counts what has arrived.
perl -e 'socket(S, 2, 2, 17); bind(S, pack("S n x12", 2, 9)) or die; sleep 1000' &
receiver=$!
senders=
# sends FIRST LAST: from now on these stations send as much as their sockets take.
sends() {
    for number in $(seq "$1" "$2"); do
        ip netns exec "s$number" perl -e 'socket(S, 2, 2, 17); my $to = pack("S n C4 x8", 2, 9, 10, 0, 0, 1);
            my $datagram = "x" x 1472; send(S, $datagram, 0, $to) while 1' &
        senders="$senders $!"
    done
    sleep 0.5
    before=$(cat /sys/class/net/wlan0/statistics/rx_packets) since=$(cut -d' ' -f1 /proc/uptime)
    sleep 2
    after=$(cat /sys/class/net/wlan0/statistics/rx_packets) until=$(cut -d' ' -f1 /proc/uptime)
    echo "SATURATED {\"stations\": $2, \"datagrams\": $((after - before)), \"since\": $since, \"until\": $until}"
}
sends 1 1
sends 2 6
sends 7 12
kill $senders $receiver
sleep 0.5
medium_ends
