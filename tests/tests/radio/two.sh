# Two access points, each with a station: on one channel, then on two.

radios 4
medium /air.toml --json
g54="supported_rates=60 90 120 180 240 360 480 540"
basic="basic_rates=60 120 240 540"
ip netns add apb
iw phy phy1 set netns name apb
ip -n apb link set lo up
access_point wlan0 air 1 "$g54" "$basic"
printf '%s\n' interface=wlan1 driver=nl80211 ssid=other hw_mode=g channel=1 "$g54" "$basic" >/tmp/other.conf
ip netns exec apb hostapd -B /tmp/other.conf >/dev/null
ip addr add 10.0.0.1/24 dev wlan0
ip -n apb addr add 10.0.1.1/24 dev wlan1
station phy2 a air 10.0.0.2 key_mgmt=NONE
station phy3 b other 10.0.1.2 key_mgmt=NONE
joined a
joined b
iw dev wlan0 set bitrates legacy-2.4 54
ip netns exec apb iw dev wlan1 set bitrates legacy-2.4 54
ip netns exec a iw dev wlan2 set bitrates legacy-2.4 54
ip netns exec b iw dev wlan3 set bitrates legacy-2.4 54
ip netns exec a ping -c 1 10.0.0.1 >/dev/null
ip netns exec b ping -c 1 10.0.1.1 >/dev/null
both() {
    iperf3 -s -p 5201 --one-off --json >/tmp/a.json &
    ip netns exec apb iperf3 -s -p 5202 --one-off --json >/tmp/b.json &
    sleep 0.3
    ip netns exec a iperf3 -c 10.0.0.1 -p 5201 -u -b 100M -l 1472 -t 2 >/tmp/ca.txt &
    one=$!
    ip netns exec b iperf3 -c 10.0.1.1 -p 5202 -u -b 100M -l 1472 -t 2 >/tmp/cb.txt
    wait $one
    sleep 0.3
    printf '%s_A ' "$1"; tr -d '\n' </tmp/a.json; echo
    printf '%s_B ' "$1"; tr -d '\n' </tmp/b.json; echo
}
both SAME
# The access point of b goes to another channel, where b finds it.
killall hostapd
sleep 0.2
hostapd -B /tmp/air.conf >/dev/null
sed 's/^channel=1/channel=6/' /tmp/other.conf >/tmp/other6.conf
ip netns exec apb hostapd -B /tmp/other6.conf >/dev/null
sleep 3
joined a
joined b
ip netns exec b iw dev wlan3 link
iw dev wlan0 set bitrates legacy-2.4 54
ip netns exec apb iw dev wlan1 set bitrates legacy-2.4 54
both APART
medium_ends
