# The manager (KernelSU, APatch, Magisk) reads this when it installs the module: $MODPATH has the unpacked zip.
[ "$ARCH" = arm64 ] || abort "! This module is for arm64, and this device is $ARCH"
. "$MODPATH/common.sh"
set_perm_recursive "$MODPATH" 0 0 0755 0644
set_perm_recursive "$MODPATH/bin" 0 0 0755 0755
set_perm_recursive "$MODPATH/system/bin" 0 0 0755 0755

mkdir -p "$DATA"
chmod 700 "$DATA"
if [ -e "$DATA/agent.toml" ]; then
  ui_print "- Kept $DATA/agent.toml"
else
  # A number of its own for each device. TOML has numbers up to 2^63 - 1.
  station=$(od -An -N 7 -t u8 /dev/urandom | tr -d ' ')
  [ -n "$station" ] || abort "! Cannot read a random number"
  sed "s/@STATION@/$station/" "$MODPATH/agent.toml" >"$DATA/agent.toml"
  ui_print "- Wrote $DATA/agent.toml"
fi
chmod 600 "$DATA/agent.toml"
# A new version may be tried again where the old one was stopped for the safety of the device.
rm -f "$DATA/starting"

ui_print "- What this kernel offers:"
"$MODPATH/bin/wakeai" doctor 2>&1 | while read -r line; do ui_print "  $line"; done
"$MODPATH/bin/wakeai" doctor >/dev/null 2>&1 ||
  ui_print "! This kernel lacks what the agent needs; see above. The module does nothing on it."
problem=$(cfi_problem /proc/config.gz "$(uname -r)")
[ -z "$problem" ] || [ -e "$DATA/allow-cfi" ] || ui_print "! The agent will not start: $problem"
if [ ! -e "$DATA/group.key" ]; then
  ui_print "- Copy the fleet's group key to $DATA/group.key (mode 600), or make the fleet's first one after the restart:"
  ui_print "  su -c '$MODULE/system/bin/wakeai agent --generate-key $DATA/group.key'"
fi
