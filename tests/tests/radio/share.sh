# UDP of 100 Mbit/s offered to the air by each of two stations, at 54 Mbit/s.

radios 3
medium /air.toml --json
# A rate can be pinned only where it is a basic rate of the network.
access_point wlan0 air 1 "supported_rates=60 90 120 180 240 360 480 540" "basic_rates=60 120 240 540"
ip addr add 10.0.0.1/24 dev wlan0
station phy1 a air 10.0.0.2 key_mgmt=NONE
station phy2 b air 10.0.0.3 key_mgmt=NONE
joined a
joined b
iw dev wlan0 set bitrates legacy-2.4 54
for name in a b; do
    ip netns exec "$name" iw dev "wlan$([ $name = a ] && echo 1 || echo 2)" set bitrates legacy-2.4 54
    ip netns exec "$name" ping -c 1 10.0.0.1
done
iperf3 -s -p 5201 --one-off --json >/tmp/a.json &
iperf3 -s -p 5202 --one-off --json >/tmp/b.json &
sleep 0.5
ip netns exec a iperf3 -c 10.0.0.1 -p 5201 -u -b 100M -l 1472 -t 5 >/tmp/ca.txt &
one=$!
ip netns exec b iperf3 -c 10.0.0.1 -p 5202 -u -b 100M -l 1472 -t 5 >/tmp/cb.txt
wait $one
sleep 1
cat /tmp/ca.txt /tmp/cb.txt
iw dev wlan0 station dump
medium_ends
printf 'A '; tr -d '\n' </tmp/a.json; echo
printf 'B '; tr -d '\n' </tmp/b.json; echo
