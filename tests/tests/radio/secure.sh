# A WPA2 and a WPA3 station of one access point.

radios 3
medium /air.toml --json --pcap /tmp/air.pcap
access_point wlan0 air 1 ieee80211n=1 wmm_enabled=1 "supported_rates=60 90 120 180 240 360 480 540" \
    "basic_rates=60 120 240 540" wpa=2 "wpa_key_mgmt=WPA-PSK SAE" rsn_pairwise=CCMP wpa_passphrase=secretsecret \
    ieee80211w=1 sae_require_mfp=1
ip addr add 10.0.0.1/24 dev wlan0
station phy1 a air 10.0.0.2 key_mgmt=WPA-PSK 'psk="secretsecret"' pairwise=CCMP
station phy2 b air 10.0.0.3 key_mgmt=SAE 'psk="secretsecret"' pairwise=CCMP ieee80211w=2
joined a
joined b
for name in a b; do
    ip netns exec "$name" wpa_cli -p "/tmp/wpa-$name" status | grep -E 'key_mgmt|wpa_state|pmf' | tr '\n' ' '
    echo "STATE $name"
    interface=wlan$([ $name = a ] && echo 1 || echo 2)
    ip netns exec "$name" iw dev "$interface" set bitrates ht-mcs-2.4 7 lgi-2.4
    ip netns exec "$name" ping -c 2 10.0.0.1 >/dev/null
done
iw dev wlan0 set bitrates ht-mcs-2.4 7 lgi-2.4
udp_of_two
iw dev wlan0 station dump
medium_ends
