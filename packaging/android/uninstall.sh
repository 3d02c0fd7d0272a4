#!/system/bin/sh
# The manager runs this when the module is removed, at once or at the next start of the device.
MODDIR=${0%/*}
. "$MODDIR/common.sh"
if [ -e "$WAKEAI_RUN/service.pid" ]; then
  service=$(cat "$WAKEAI_RUN/service.pid")
  # The number may be another process's by now.
  if grep -q wakeai "/proc/$service/cmdline" 2>/dev/null; then
    kill "$service"
    while [ -d "/proc/$service" ]; do sleep 1; done
  fi
fi
[ ! -e "$MODDIR/bin/wakeai" ] || "$MODDIR/bin/wakeai" sweep
rm -rf "$WAKEAI_RUN" "$DATA"
