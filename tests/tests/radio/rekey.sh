# Agents under WPA2, with a new group key of hostapd every two seconds.

radios 3
agents_need
medium /air.toml --json
access_point wlan0 air 1 "supported_rates=60 90 120 180 240 360 480 540" "basic_rates=60 120 240 540" wpa=2 \
    wpa_key_mgmt=WPA-PSK rsn_pairwise=CCMP wpa_passphrase=secretsecret wpa_group_rekey=2
ip addr add 10.0.0.1/24 dev wlan0
station phy1 a air 10.0.0.2 key_mgmt=WPA-PSK 'psk="secretsecret"'
station phy2 b air 10.0.0.3 key_mgmt=WPA-PSK 'psk="secretsecret"'
agents_of wlan1 wlan2
sleep 10
says BEFORE a
says BEFORE b
sleep 30
says AFTER a
says AFTER b
echo "HANDSHAKES $(grep -c 'Group rekeying completed' /tmp/a.events) $(grep -c 'Group rekeying completed' /tmp/b.events)"
tail -n 3 /tmp/a.events
agent_ends a
agent_ends b
medium_ends
