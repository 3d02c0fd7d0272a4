#!/system/bin/sh
# The manager's button "Action": what the agent does.
MODDIR=${0%/*}
. "$MODDIR/common.sh"
"$MODDIR/bin/wakeai" status || tail -n 20 "$DATA/agent.log"
