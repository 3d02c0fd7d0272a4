# What the guests' scripts share: radios, hostapd, wpa_supplicant, and the medium.

# The shell's own is smaller.
ip() {
    /usr/bin/ip "$@"
}

# Loads the driver with this number of radios, which are phy0, phy1 and so on, with interfaces wlan0, wlan1 ...
radios() {
    while read -r module; do
        options=
        [ "$module" != mac80211_hwsim ] || options="radios=$1 $2"
        # shellcheck disable=SC2086
        [ -e "/sys/module/$module" ] || insmod "/modules/$module.ko" $options
    done </modules/wifi
    mkdir -p /var/run/netns /tmp
}

# Starts the medium with these arguments, and waits until it is one.
medium() {
    wakeai medium "$@" >/tmp/medium.out 2>/tmp/medium.err &
    medium=$!
    until grep -q 'until Ctrl-C' /tmp/medium.err; do
        kill -0 "$medium" || { cat /tmp/medium.err; return 1; }
        sleep 0.1
    done
}

# Ends the medium and prints what it has counted.
medium_ends() {
    kill -INT "$medium"
    wait "$medium" || echo "medium ended with $?"
    cat /tmp/medium.err
    printf 'COUNTED '; tr -d '\n' </tmp/medium.out; echo
}

# access_point IF NAME CHANNEL LINES...: starts hostapd on an interface of this namespace, and gives it 10.0.NAME.1.
access_point() {
    interface=$1 name=$2 channel=$3
    shift 3
    printf '%s\n' "interface=$interface" driver=nl80211 "ssid=$name" hw_mode=g "channel=$channel" "$@" \
        >"/tmp/$name.conf"
    hostapd -B "/tmp/$name.conf" >"/tmp/$name.log" || { cat "/tmp/$name.log"; return 1; }
}

# station PHY NAME SSID ADDRESS LINES...: moves a radio into the namespace NAME, where wpa_supplicant joins SSID.
station() {
    phy=$1 name=$2 ssid=$3 address=$4
    shift 4
    interface=wlan${phy#phy}
    ip netns add "$name"
    iw phy "$phy" set netns name "$name"
    printf '%s\n' 'ctrl_interface=/tmp/wpa-'"$name" 'network={' "ssid=\"$ssid\"" 'scan_ssid=0' "$@" '}' \
        >"/tmp/$name.conf"
    ip -n "$name" link set lo up
    ip -n "$name" link set "$interface" up
    ip -n "$name" addr add "$address/24" dev "$interface"
    ip netns exec "$name" wpa_supplicant -B -f "/tmp/$name.events" -i "$interface" -c "/tmp/$name.conf" \
        >"/tmp/$name.log"
}

# Waits until the station in this namespace is associated and authorized.
joined() {
    tries=0
    until ip netns exec "$1" wpa_cli -p "/tmp/wpa-$1" status | grep -q wpa_state=COMPLETED; do
        tries=$((tries + 1))
        [ "$tries" -lt 300 ] || { cat /tmp/medium.err "/tmp/$1.log"; ip netns exec "$1" wpa_cli -p "/tmp/wpa-$1" status; return 1; }
        sleep 0.1
    done
}

# UDP of 100 Mbit/s from the stations a and b to the access point for two seconds; prints what its two servers have counted.
udp_of_two() {
    iperf3 -s -p 5201 --one-off --json >/tmp/a.json &
    iperf3 -s -p 5202 --one-off --json >/tmp/b.json &
    sleep 0.5
    ip netns exec a iperf3 -c 10.0.0.1 -p 5201 -u -b 100M -l 1472 -t 2 >/tmp/ca.txt &
    one=$!
    ip netns exec b iperf3 -c 10.0.0.1 -p 5202 -u -b 100M -l 1472 -t 2 >/tmp/cb.txt
    wait $one
    sleep 0.5
    printf 'A '; tr -d '\n' </tmp/a.json; echo
    printf 'B '; tr -d '\n' </tmp/b.json; echo
}

# What agents need of the guest.
agents_need() {
    mkdir -p /run/wakeai
    mount -t bpf bpf /sys/fs/bpf
    mount -t debugfs debugfs /sys/kernel/debug
}

# Runs a program in a network namespace. Unlike ip-netns(8) it leaves /sys as it is, which all agents share.
in_namespace() {
    namespace=$1
    shift
    nsenter --net="/run/netns/$namespace" "$@"
}

# keys NAME KEYS...: the group keys of an agent, the first of which signs; read at once by one that runs.
keys() {
    name=$1
    shift
    for key in "$@"; do cat "/tmp/$key.key"; done >"/tmp/$name.keys"
    chmod 600 "/tmp/$name.keys"
    [ ! -e "/tmp/$name.pid" ] || kill -HUP "$(cat "/tmp/$name.pid")"
}

# agent NAME INTERFACE NUMBER: starts an agent in a namespace.
agent() {
    printf '%s\n' "interface = \"$2\"" "key_file = \"/tmp/$1.keys\"" "station = $3" '[law]' 'name = "airtime"' >"/tmp/$1.toml"
    nsenter --net="/run/netns/$1" wakeai agent --config "/tmp/$1.toml" 2>"/tmp/$1.agent" &
    echo $! >"/tmp/$1.pid"
}

# agents_of A B: once the stations a and b have joined, starts an agent with the same key on the interface A of a and on B of b.
agents_of() {
    joined a
    joined b
    wakeai agent --generate-key /tmp/old.key >/dev/null
    keys a old
    keys b old
    agent a "$1" 1
    agent b "$2" 2
}

# says WORD NAME: prints what an agent says of itself.
says() {
    printf '%s %s ' "$1" "$2"
    wakeai status --json --socket "/run/wakeai/agent-$(stat -Lc %i "/run/netns/$2").sock" 2>&1 | tr -d '\n'
    echo
}

# Ends an agent and prints its exit status.
agent_ends() {
    kill "$(cat "/tmp/$1.pid")"
    status=0
    wait "$(cat "/tmp/$1.pid")" || status=$?
    echo "ENDED $1 $status"
    sed "s/^/LOG $1 /" "/tmp/$1.agent"
}

# unplug NAME NUMBER: removes the radio of this number, which is in the namespace NAME, by a message to its driver.
unplug() {
    in_namespace "$1" perl -e '
        socket(S, 16, 3, 16) or die "socket: $!";
        my $attribute = sub { my ($kind, $data) = @_; my $text = pack("SSa*", 4 + length $data, $kind, $data);
            $text . "\0" x (-length($text) % 4) };
        my $ask = sub { my ($family, $command, $attributes) = @_;
            my $body = pack("CCS", $command, 1, 0) . $attributes;
            my $text = pack("LSSLL", 16 + length $body, $family, 5, 1, 0) . $body;
            send(S, $text, 0, pack("SSLL", 16, 0, 0, 0)) or die "send: $!";
            recv(S, my $answer, 65536, 0); $answer };
        my $answer = $ask->(16, 3, $attribute->(2, "MAC80211_HWSIM\0"));
        my ($at, $family) = (20, 0);
        while ($at < length $answer) {
            my ($length, $kind) = unpack("SS", substr($answer, $at, 4));
            $family = unpack("S", substr($answer, $at + 4, 2)) if $kind == 1;
            $at += ($length + 3) & ~3;
        }
        $answer = $ask->($family, 5, $attribute->(10, pack("L", $ARGV[0])));
        printf "UNPLUG %d\n", unpack("l", substr($answer, 16, 4));' "$2"
}
