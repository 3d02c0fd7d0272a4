# Read by the tests of Debian's package, which run in a chroot or in a guest (scripts/test-deb). They need the tools of
# a minimal Debian alone.

say() { echo "test-deb: $*"; }
fail() { echo "test-deb: FAILED: $*"; exit 1; }

# expect WHAT COMMAND...: the command succeeds.
expect() {
  what=$1; shift
  "$@" >/tmp/said 2>&1 || { cat /tmp/said; fail "$what: $*"; }
}

# refuse WHAT COMMAND...: the command fails.
refuse() {
  what=$1; shift
  if "$@" >/tmp/said 2>&1; then cat /tmp/said; fail "$what: $*"; fi
}

# wait_for SECONDS WHAT COMMAND...: the command succeeds within this time.
wait_for() {
  left=$(($1 * 5)); what=$2; shift 2
  until "$@" >/tmp/said 2>&1; do
    left=$((left - 1))
    [ $left -gt 0 ] || { cat /tmp/said; fail "$what: $*"; }
    sleep 0.2
  done
}

# has FILE TEXT
has() { grep -qF -e "$2" "$1" || { cat "$1"; fail "$1 has no \"$2\""; }; }

# What a package could leave behind: every file with its type, mode and owner, the contents of /etc, users, units, sysctls,
# BPF pins, rules, routes and network namespaces. Left out are the records of apt, dpkg, systemd and of the system itself,
# and the backups of passwd(5).
state() {
  find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /wakeai-test \
    -o -path /var/log -o -path /var/cache -o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /var/tmp \
    -o -path /var/lib/systemd -o -path /root \) -prune \
    -o \( -name 'passwd-' -o -name 'group-' -o -name 'shadow-' -o -name 'gshadow-' -o -name .pwd.lock \) -prune \
    -o -printf '%y %m %u:%g %p %l\n' | sort
  find /etc -xdev -type f ! -name '*-' ! -name .pwd.lock ! -name ld.so.cache ! -name resolv.conf -exec sha256sum {} + | sort -k 2
  find /var/lib/dpkg /var/lib/systemd /run -name '*wakeai*' | sort
  ls -d /run/wakeai /sys/fs/bpf/wakeai /sys/fs/cgroup/wakeai 2>/dev/null || true
  for name in congestion_control allowed_congestion_control available_congestion_control; do
    echo "$name $(cat /proc/sys/net/ipv4/tcp_$name)"
  done
  if command -v ip >/dev/null; then ip netns list; ip -4 rule; ip -6 rule; ip -o link | sed 's/<.*//'; fi
  if command -v nft >/dev/null; then nft list ruleset; fi
}

# same BEFORE AFTER WHAT: the two states are equal.
same() {
  diff "$1" "$2" || fail "$3"
}
