# A station roams from one access point of a network to the other, on another channel, while it is pinged. The capture of it
# is read by tshark outside of the guest, and so it is printed.

radios 3
medium /air.toml --json --pcap /tmp/air.pcap
g54="supported_rates=60 90 120 180 240 360 480 540"
basic="basic_rates=60 120 240 540"
ip link add br0 type bridge
ip link set br0 up
access_point wlan0 air 1 ieee80211n=1 wmm_enabled=1 "$g54" "$basic" bridge=br0
sed 's/^channel=1$/channel=6/; s/^interface=wlan0$/interface=wlan1/' /tmp/air.conf >/tmp/other.conf
hostapd -B /tmp/other.conf >/tmp/other.log || cat /tmp/other.log
ip addr add 10.0.0.1/24 dev br0
station phy2 a air 10.0.0.2 key_mgmt=NONE
joined a
iw dev wlan0 set bitrates ht-mcs-2.4 5 lgi-2.4
iw dev wlan1 set bitrates ht-mcs-2.4 5 lgi-2.4
ip netns exec a iw dev wlan2 set bitrates ht-mcs-2.4 5 lgi-2.4
cli() {
    ip netns exec a wpa_cli -p /tmp/wpa-a "$@"
}
of_status() {
    cli status | sed -n "s/^$1=//p"
}
first=$(of_status bssid)
other=$(printf '02:00:00:00:00:00\n02:00:00:00:01:00\n' | grep -v "$first")
ip netns exec a ping -i 0.1 -c 40 10.0.0.1 >/tmp/ping.txt &
ping=$!
sleep 1
cli scan >/dev/null
until cli scan_results | grep -q "$other"; do sleep 0.2; done
echo "ROAM $(cli roam "$other" | tail -n 1) from $first at $(of_status freq)"
sleep 1
echo "NOW $(of_status bssid) at $(of_status freq)"
wait $ping || true
grep transmitted /tmp/ping.txt | sed 's/^/PINGED /'
medium_ends
echo CAPTURE
gzip -c /tmp/air.pcap | base64
echo END OF CAPTURE
