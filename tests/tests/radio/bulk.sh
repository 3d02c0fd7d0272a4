# Agents beside uploads and downloads of two stations of 802.11n at MCS 7.

radios 3
agents_need
medium /air.toml --json
access_point wlan0 air 1 ieee80211n=1 wmm_enabled=1 "supported_rates=60 90 120 180 240 360 480 540" \
    "basic_rates=60 120 240 540"
ip addr add 10.0.0.1/24 dev wlan0
iw dev wlan0 set bitrates ht-mcs-2.4 7 lgi-2.4
for name in a b; do
    number=$([ $name = a ] && echo 1 || echo 2)
    station "phy$number" "$name" air "10.0.0.$((number + 1))" key_mgmt=NONE
    joined "$name"
    ip netns exec "$name" iw dev "wlan$number" set bitrates ht-mcs-2.4 7 lgi-2.4
    ip netns exec "$name" iw dev "wlan$number" set power_save off
    iperf3 -s -D -p "520$number"
done
agents_of wlan1 wlan2
sleep 5
# bulk WORD OPTIONS: TCP of both stations for some seconds; what the agents say shortly before its end.
bulk() {
    word=$1
    shift
    for number in 1 2; do
        name=$([ $number = 1 ] && echo a || echo b)
        ip netns exec "$name" iperf3 -c 10.0.0.1 -p "520$number" -t 9 --json "$@" >"/tmp/bulk$number" &
        eval "bulk$number=$!"
    done
    sleep 8
    says "$word" a
    says "$word" b
    wait "$bulk1"
    wait "$bulk2"
    for number in 1 2; do echo "GOT $word $(tr -d '\n\t' <"/tmp/bulk$number")"; done
    sleep 2
}
bulk UP
bulk DOWN -R
agent_ends a
agent_ends b
medium_ends
