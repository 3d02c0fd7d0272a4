# The checks of the static program in a guest whose userland is busybox and which has no shared library. Run by the
# guest's init; the last line says that all checks were made. Files: /quickstart.toml, /expected.json (its
# result by another build of the program), /cert.pem and /key.pem. Programs: wakeai, name_server.
. /lib.sh

echo "guest: Linux $(uname -r) $(uname -m)"
libraries=$(find / -xdev -name '*.so*' ! -path '/modules/*' ! -path '/proc/*' ! -path '/sys/*')
[ -z "$libraries" ] || fail "this guest has shared libraries: $libraries"

# doctor
wakeai doctor >/tmp/doctor.txt || fail "doctor: $(cat /tmp/doctor.txt)"
wakeai doctor --json >/tmp/doctor.json
grep -q '"can_monitor":true' /tmp/doctor.json || fail "$(cat /tmp/doctor.json)"
grep -q '"can_bound":true' /tmp/doctor.json || fail "$(cat /tmp/doctor.json)"
passed "doctor found what monitor and agent need"

# sim
wakeai sim /quickstart.toml --set duration=5s --set warmup=1s --conditions default,airtime --json >/tmp/sim.json \
  2>/tmp/sim.log || fail "sim: $(cat /tmp/sim.log)"
grep -q '"condition":"airtime"' /tmp/sim.json || fail "$(head -c 2000 /tmp/sim.json)"
# The time that a run took is the machine's.
sed -i 's/"wall_s":[0-9.e-]*,//g' /tmp/sim.json /expected.json
cmp /tmp/sim.json /expected.json || fail "$(head -c 2000 /tmp/sim.json)"
passed "sim gave the result that the other build of the program gives"

# agent
cable a
mkdir -p /etc/wakeai
wakeai agent --generate-key /etc/wakeai/group.key
# configure FILE INTERFACE STATION
configure() {
  cat >"$1" <<END
interface = "$2"
key_file = "/etc/wakeai/group.key"
station = $3
bssid = "02:00:5e:10:00:01"
link_rate = "54Mbit/s"
[law]
name = "fixed"
ceiling = 5
END
}
configure /etc/wakeai/agent.toml a 1
configure /tmp/there.toml "$peer" 2
default=$(cat /proc/sys/net/ipv4/tcp_congestion_control)
wakeai agent 2>/tmp/agent.log & agent=$!
nsenter -t "$other" -n wakeai agent --config /tmp/there.toml 2>/tmp/agent-there.log & agent_there=$!
counts() { wakeai status --json 2>/dev/null >/tmp/status.json && grep -q '"station":"0000000000000002","sending"' /tmp/status.json; }
until_is "the agents count each other" counts
[ "$(cat /proc/sys/net/ipv4/tcp_congestion_control)" = wakeai_cubic ] || fail "the default algorithm is another one"
passed "two agents count each other"

# monitor, and the bound, while busybox sends
bound_and_monitor wakeai
passed "monitor wrote $samples samples of a bounded connection"

# Names: /etc/hosts, and a name server. A program that loads the modules of nsswitch.conf would fail here.
nsenter -t "$other" -n name_server 10.77.0.2 served.test 10.77.0.2 & server=$!
echo "127.0.0.1 localhost
10.77.0.2 listed.test" >/etc/hosts
echo "nameserver 10.77.0.2" >/etc/resolv.conf
echo "passwd: files systemd
group: files systemd
hosts: mymachines mdns4_minimal [NOTFOUND=return] resolve [!UNAVAIL=return] nosuchmodule" >/etc/nsswitch.conf
mkdir /tmp/uploads
chmod 600 /key.pem
(umask 077; echo "tablet 0123456789abcdef0123456789abcdef" >/tmp/tokens; echo 0123456789abcdef0123456789abcdef >/tmp/token)
nsenter -t "$other" -n wakeai serve /tmp/uploads --listen 10.77.0.2:8080 --cert /cert.pem --key /key.pem --token-file /tmp/tokens \
  2>/tmp/serve.log >/dev/null & uploads=$!
head -c 300000 /dev/urandom >/tmp/photo
export HOME=/tmp
for name in listed served; do
  put() {
    wakeai put /tmp/photo "https://$name.test:8080/files" --ca /cert.pem --token-file /tmp/token --name "$name" \
      --retry-for 5s >/tmp/put.log 2>&1
  }
  until_is "$name.test has the file" put
  cmp /tmp/photo "/tmp/uploads/$name"
done
if wakeai put /tmp/photo https://unknown.test:8080/files --ca /cert.pem --token-file /tmp/token --retry-for 1s >/tmp/unknown.txt 2>&1; then
  fail "a name that nobody knows was found"
fi
passed "put reached hosts by /etc/hosts and by the name server: $(tail -n 1 /tmp/unknown.txt)"
there httpd -p 10.77.0.2:8081 -h /tmp/uploads
wakeai proxy --listen 127.0.0.1:1080 --algorithm wakeai_cubic >/tmp/proxy.txt 2>/tmp/proxy.log & proxy=$!
ask() {
  { printf 'CONNECT served.test:8081 HTTP/1.1\r\nHost: served.test:8081\r\n\r\n'; sleep 1
    printf 'GET /listed HTTP/1.0\r\n\r\n'; sleep 2; } |
    timeout 10 nc 127.0.0.1 1080 >/tmp/asked 2>/dev/null || true
  tail -c 300000 /tmp/asked | cmp -s - /tmp/photo
}
until_is "the proxy reaches a host by its name" ask
passed "proxy reached a host by its name"
# A user by name, from /etc/passwd.
echo "root:x:0:0::/:/bin/sh
relay:x:4711:4711::/:/bin/sh" >/etc/passwd
echo "root:x:0:
relay:x:4711:" >/etc/group
wakeai proxy --listen 127.0.0.1:1081 --user relay >/tmp/proxy-user.txt 2>/tmp/proxy-user.log & relay=$!
serves() { grep -l "^Uid:.4711" /proc/[0-9]*/status 2>/dev/null | grep -q .; }
until_is "the proxy is another user" serves
passed "proxy served as a user of /etc/passwd"

# Nothing stays.
kill $relay $proxy $agent $agent_there $uploads $server
wait $relay $proxy $agent $agent_there || true
wakeai sweep
[ "$(cat /proc/sys/net/ipv4/tcp_congestion_control)" = "$default" ] || fail "the default algorithm is still another one"
[ ! -e /sys/fs/bpf/wakeai ] || fail "pins are left: $(ls /sys/fs/bpf/wakeai)"
left=$(ls /run/wakeai/leases /run/wakeai | grep -E 'json|sock' || true)
[ -z "$left" ] || fail "left in /run/wakeai: $left"
kill $other
passed "all checks made"
