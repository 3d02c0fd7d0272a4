# UDP of 100 Mbit/s offered to the air of 802.11n by each of two stations, at MCS 7.

radios 3
medium /air.toml --json
access_point wlan0 air 1 ieee80211n=1 wmm_enabled=1 "supported_rates=60 90 120 180 240 360 480 540" \
    "basic_rates=60 120 240 540"
ip addr add 10.0.0.1/24 dev wlan0
station phy1 a air 10.0.0.2 key_mgmt=NONE
station phy2 b air 10.0.0.3 key_mgmt=NONE
joined a
joined b
for name in a b; do
    interface=wlan$([ $name = a ] && echo 1 || echo 2)
    ip netns exec "$name" iw dev "$interface" set bitrates ht-mcs-2.4 7 lgi-2.4
done
iw dev wlan0 set bitrates ht-mcs-2.4 7 lgi-2.4
# Without an answer to the request for Block Ack that the first frame causes, this would take a second.
ip netns exec a ping -c 1 10.0.0.1 | grep 'time='
udp_of_two
medium_ends
