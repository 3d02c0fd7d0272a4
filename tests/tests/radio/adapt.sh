# What the rate control says of a link whose frames begin to fail 8 s after the medium has started, and stop failing 6 s later.

radios 2
medium /air.toml --json
echo "STARTED $(cut -d' ' -f1 /proc/uptime)"
access_point wlan0 air 1 ieee80211n=1 wmm_enabled=1
ip addr add 10.0.0.1/24 dev wlan0
station phy1 a air 10.0.0.2 key_mgmt=NONE
joined a
ip netns exec a iw dev wlan1 set power_save off
iperf3 -s -D
sleep 0.3
ip netns exec a iperf3 -u -b 20M -l 1472 -c 10.0.0.1 -t 16 >/tmp/udp.txt &
mount -t debugfs debugfs /sys/kernel/debug
echo "FILES $(find /sys/kernel/debug/ieee80211/phy1 -path '*stations*' | tr '\n' ' ')"
number=0
while [ $number -lt 75 ]; do
    number=$((number + 1))
    echo "LINK $(cut -d' ' -f1 /proc/uptime) $(ip netns exec a iw dev wlan1 station dump | tr '\t\n' ' ;')"
    sleep 0.2
done
medium_ends
