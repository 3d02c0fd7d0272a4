#!/system/bin/sh
# The manager starts this late in the device's start, in the background. It runs the agent for as long as the device runs.
MODDIR=${0%/*}
. "$MODDIR/common.sh"
PROGRAM=$MODDIR/bin/wakeai
LOG=$DATA/agent.log
CONFIG=$DATA/agent.toml
umask 077

log() { echo "$(date '+%Y-%m-%dT%H:%M:%S') module: $*" >>"$LOG"; }
give_up() { log "the agent is not started: $*"; exit 0; }

[ -e "$CONFIG" ] || { mkdir -p "$DATA"; give_up "$CONFIG is missing; install the module again"; }
interface=$(sed -n 's/^interface *= *"\(.*\)".*/\1/p' "$CONFIG" | head -n 1)
key=$(sed -n 's/^key_file *= *"\(.*\)".*/\1/p' "$CONFIG" | head -n 1)
[ -e "$key" ] || give_up "the group key $key is missing; copy it there, mode 600, and restart the device"

# A device that restarted while the agent was young may have done so because of it.
[ ! -e "$DATA/starting" ] || give_up "the device restarted within a minute of the agent's last start. That may be a panic of \
the kernel: look into /sys/fs/pstore. To try again, remove $DATA/starting and restart the device"
problem=$(cfi_problem /proc/config.gz "$(uname -r)")
[ -z "$problem" ] || [ -e "$DATA/allow-cfi" ] || give_up "$problem"

mkdir -p "$WAKEAI_RUN"
chmod 755 "$WAKEAI_RUN"
echo $$ >"$WAKEAI_RUN/service.pid"
agent=
stop() {
  trap '' TERM INT
  [ -z "$agent" ] || { kill "$agent" 2>/dev/null; wait "$agent"; }
  rm -f "$DATA/starting" "$WAKEAI_RUN/service.pid"
  exit 0
}
trap stop TERM INT

while :; do
  # The interface comes with the first use of Wi-Fi.
  while [ ! -e "/sys/class/net/$interface" ]; do sleep 5; done
  : >"$DATA/starting"
  sync
  "$PROGRAM" agent --config "$CONFIG" 2>>"$LOG" &
  agent=$!
  seconds=0
  while kill -0 "$agent" 2>/dev/null; do
    sleep 2
    seconds=$((seconds + 2))
    [ $seconds -lt 60 ] || rm -f "$DATA/starting"
    # The agent appends, so the file can be emptied under it.
    if [ "$(stat -c %s "$LOG" 2>/dev/null || echo 0)" -gt 1000000 ]; then
      cp "$LOG" "$LOG.1"
      : >"$LOG"
    fi
  done
  wait "$agent"
  status=$?
  agent=
  rm -f "$DATA/starting"
  case $status in
    2 | 77) rm -f "$WAKEAI_RUN/service.pid"; give_up "it ended with $status, and trying again changes nothing" ;;
  esac
  log "the agent ended with $status and is started again"
  sleep 5
done
