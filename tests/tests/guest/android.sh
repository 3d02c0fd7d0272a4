# The checks of the Android module. Run by the guest's init, with busybox. It makes below /android what a device has: toybox
# and mksh as /system/bin, a root that cannot be written, /data, /dev, a mounted bpffs; no /run, /tmp or /etc/passwd.
# It unpacks and starts the module as its managers do. Files: /module.zip, /from-debian/{toybox,mksh}.
. /lib.sh
LOG=/android/data/adb/wakeai/agent.log
logs="$LOG /tmp/*.log"

echo "guest: Linux $(uname -r) $(uname -m)"

mkdir -p /android
mount -t tmpfs android /android
cd /android
mkdir -p system/bin system/etc data dev proc sys lib
ln -s /system/etc etc
ln -s /system/bin bin
cp /lib/* lib # what Debian's toybox and mksh need; the program of the module needs none
cp /from-debian/* system/bin
for name in $(system/bin/toybox); do ln -s toybox "system/bin/$name"; done
ln -sf mksh system/bin/sh
mount -t bpf bpf /sys/fs/bpf
mount --rbind /dev dev
mount --rbind /proc proc
mount --rbind /sys sys
mount -o remount,ro /android
mount -t tmpfs data data
mkdir -p data/adb/modules data/adb/modules_update data/adb/ksu/bin data/local/tmp
cp /bin/busybox data/adb/ksu/bin
cd /
# In Android's userland, as root's shell of a device has it.
android() { chroot /android /system/bin/env -i PATH=/system/bin "$@"; }
# In the managers' BusyBox, which runs their scripts. Its own commands come first.
chroot /android /data/adb/ksu/bin/busybox --install -s /data/adb/ksu/bin
manager() {
  chroot /android /system/bin/env -i PATH=/data/adb/ksu/bin:/system/bin ASH_STANDALONE=1 /data/adb/ksu/bin/busybox sh "$@"
}
android sh -c 'echo "$KSH_VERSION"; toybox --version; ! touch /x 2>/dev/null' || fail "the userland is not Android's"

# install ARCHITECTURE: what a manager does with the zip.
cp /module.zip /android/data/local/tmp/module.zip
cat >/android/data/local/tmp/install.sh <<'END'
ui_print() { echo "$1"; }
abort() { echo "$1"; exit 1; }
set_perm() { chown "$2:$3" "$1" && chmod "$4" "$1"; }
set_perm_recursive() {
  find "$1" -type d | while read -r path; do set_perm "$path" "$2" "$3" "$4"; done
  find "$1" -type f | while read -r path; do set_perm "$path" "$2" "$3" "$5"; done
}
ARCH=$1 API=34 KSU=true MODPATH=/data/adb/modules_update/wakeai
rm -rf "$MODPATH" && mkdir -p "$MODPATH"
unzip -q -o /data/local/tmp/module.zip -x 'META-INF/*' -d "$MODPATH" || abort "! Cannot unzip"
. "$MODPATH/customize.sh"
END
install() { manager /data/local/tmp/install.sh "$1"; }
restart() { rm -rf /android/data/adb/modules/wakeai; mv /android/data/adb/modules_update/wakeai /android/data/adb/modules; }

if install arm >/tmp/refused.txt; then fail "a device with another architecture was not refused"; fi
grep -q "for arm64" /tmp/refused.txt || fail "$(cat /tmp/refused.txt)"
install arm64 || fail "not installed"
restart
number() { sed -n 's/^station = //p' /android/data/adb/wakeai/agent.toml; }
first=$(number)
[ "${#first}" -gt 9 ] || fail "the number of the station is '$first'"
install arm64 >/tmp/again.txt
restart
[ "$(number)" = "$first" ] || fail "an update changed the number of the station"
grep -q "Kept" /tmp/again.txt || fail "$(cat /tmp/again.txt)"
passed "installed and updated; station $first"

# service USERLAND: starts the module's service as at the start of a device.
service() { "$1" ${2:-} /data/adb/modules/wakeai/service.sh & }
said() { tail -n 3 $LOG | grep -q "$1"; }
service android sh
until_is "the service asks for the key" said "group key .* is missing"
command=/data/adb/modules/wakeai/system/bin/wakeai
android $command agent --generate-key /data/adb/wakeai/group.key
touch /android/data/adb/wakeai/starting
service android sh
until_is "the service does not repeat a start that may have ended in a panic" said "restarted within a minute"
rm /android/data/adb/wakeai/starting
for config in "CONFIG_CFI_CLANG=y" "CONFIG_CFI=y" "# CONFIG_CFI_CLANG is not set"; do
  echo "$config" | gzip >/android/data/local/tmp/config.gz
  for release in 6.1.99-android14-11 6.17.3 6.18.0-android16-5 7.0.1; do
    problem=$(android sh -c ". /data/adb/modules/wakeai/common.sh; cfi_problem /data/local/tmp/config.gz $release")
    case "$config $release" in
      "CONFIG_CFI"*" 6.1"[.7]*) [ -n "$problem" ] || fail "$config of Linux $release is no problem" ;;
      *) [ -z "$problem" ] || fail "$config of Linux $release: $problem" ;;
    esac
  done
done
passed "refused: no key, a restart after the start, kernels with control-flow integrity before 6.18"

# The Wi-Fi interface, which a cable stands in for, and a second station in another namespace.
cat >>/android/data/adb/wakeai/agent.toml <<'END'
bssid = "02:00:5e:10:00:01"
link_rate = "54Mbit/s"
[law]
name = "fixed"
ceiling = 5
END
service android sh
sleep 3
cable wlan0
sed "s/wlan0/$peer/; s/^station = .*/station = 2/" /android/data/adb/wakeai/agent.toml >/android/data/adb/there.toml
chmod 600 /android/data/adb/there.toml
nsenter -t "$other" -n chroot /android /system/bin/env -i PATH=/system/bin $command agent --config /data/adb/there.toml \
  2>/tmp/there.log & second=$!
counts() { android $command status --json 2>/dev/null | grep -q '"station":"0000000000000002","sending"'; }
until_is "the agents count each other" counts
default=cubic
[ "$(cat /proc/sys/net/ipv4/tcp_congestion_control)" = wakeai_cubic ] || fail "the default algorithm is another one"
android sh /data/adb/modules/wakeai/action.sh | grep -q controlling || fail "the action does not show the agent"
bound_and_monitor android $command
passed "under mksh and toybox the service bounds a connection; monitor wrote $samples samples"

agent() {
  for process in /proc/[0-9]*; do
    if tr '\0' ' ' <"$process/cmdline" 2>/dev/null | grep -q 'bin/wakeai agent --config /data/adb/wakeai/agent.toml'; then
      echo "${process#/proc/}"
      return
    fi
  done
}
old=$(agent)
kill -9 "$old"
other_agent() { new=$(agent); [ -n "$new" ] && [ "$new" != "$old" ] && counts; }
until_is "a killed agent is started again" other_agent
kill "$(cat /dev/wakeai/service.pid)"
ended() { [ -z "$(agent)" ] && [ ! -e /android/data/adb/wakeai/starting ]; }
until_is "the service ends in good order" ended
service manager
until_is "the agent runs under the managers' BusyBox, too" counts
passed "a killed agent is started again; the service works in BusyBox, too"

# Removal.
kill $second
wait $second || true
manager /data/adb/modules/wakeai/uninstall.sh
[ ! -e /dev/wakeai ] || fail "left: $(ls /dev/wakeai)"
[ ! -e /android/data/adb/wakeai ] || fail "left: $(ls /android/data/adb/wakeai)"
[ ! -e /sys/fs/bpf/wakeai ] || fail "left: $(ls /sys/fs/bpf/wakeai)"
[ -z "$(agent)" ] || fail "the agent still runs"
[ "$(cat /proc/sys/net/ipv4/tcp_congestion_control)" = $default ] || fail "the default algorithm is still another one"
kill $other
passed "removed without a trace"
passed "all checks made"
