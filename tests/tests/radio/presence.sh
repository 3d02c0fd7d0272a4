# Agents that find each other over 802.11: while stations sleep, with new group keys, behind an access point that separates its
# clients, after reassociation and roaming, and when a radio is unplugged.

radios 4
agents_need
g54="supported_rates=60 90 120 180 240 360 480 540"
basic="basic_rates=60 120 240 540"
medium /air.toml --json --pcap /tmp/air.pcap
ip link add br0 type bridge
ip link set br0 up
access_point wlan0 air 1 "$g54" "$basic" bridge=br0
ip addr add 10.0.0.1/24 dev br0
station phy2 a air 10.0.0.2 key_mgmt=NONE
station phy3 b air 10.0.0.3 key_mgmt=NONE
agents_of wlan2 wlan3
wakeai agent --generate-key /tmp/new.key >/dev/null
sleep 15
says MET a
says MET b

# Both stations tell the access point that they sleep, so it keeps what is for everybody until the next DTIM.
sleeps() {
    for phy in phy2 phy3; do echo "$1" >"/sys/kernel/debug/ieee80211/$phy/hwsim/ps"; done
}
sleeps 1
sleep 15
says SLEPT a
says SLEPT b
sleeps 0
sleep 1
medium_ends
echo CAPTURE
gzip -c /tmp/air.pcap | base64
echo END OF CAPTURE

medium /air.toml --json
for name in a b; do keys "$name" old new; done
sleep 5
for name in a b; do keys "$name" new old; done
sleep 5
for name in a b; do keys "$name" new; done
sleep 10
says REKEYED a
says REKEYED b
# With the old key a is a stranger to b.
keys a old
sleep 5
says STRANGE b
keys a new
sleep 2

# The access point starts again, with isolation or without.
hostapd_again() {
    killall hostapd
    sleep 0.5
    { grep -v ap_isolate /tmp/air.conf; echo "ap_isolate=$1"; } >/tmp/again.conf
    hostapd -B /tmp/again.conf >/tmp/again.log || cat /tmp/again.log
    joined a
    joined b
    sleep 25
}
hostapd_again 1
says ISOLATED a
says ISOLATED b
wakeai status --socket "/run/wakeai/agent-$(stat -Lc %i /run/netns/a).sock" | sed 's/^/ADVICE /'
hostapd_again 0
says TOGETHER a
says TOGETHER b

sed 's/^channel=1$/channel=6/; s/^interface=wlan0$/interface=wlan1/' /tmp/air.conf >/tmp/other.conf
hostapd -B /tmp/other.conf >/tmp/other.log || cat /tmp/other.log
roams() {
    cli="ip netns exec $1 wpa_cli -p /tmp/wpa-$1"
    $cli scan >/dev/null
    until $cli scan_results | grep -q 02:00:00:00:01:00; do sleep 0.2; done
    echo "ROAM $1 $($cli roam 02:00:00:00:01:00 | tail -n 1)"
    sleep 25
}
roams a
says APART a
says APART b
roams b
says ROAMED a
says ROAMED b

unplug a 2
sleep 25
says UNPLUGGED a
says UNPLUGGED b
agent_ends a
agent_ends b
medium_ends
