# Where the module has its files; read by its scripts and by the command `wakeai`. They run in Android's sh with toybox, and
# in the managers' BusyBox.
MODULE=/data/adb/modules/wakeai
PROGRAM=$MODULE/bin/wakeai
# Configuration, key and log. They outlive updates of the module.
DATA=/data/adb/wakeai
# Android has no /run. /dev is a tmpfs there, so the records of changes end with the changes, at a restart.
WAKEAI_RUN=/dev/wakeai
# No /tmp and no home either.
TMPDIR=/data/local/tmp
XDG_STATE_HOME=$DATA/state
export WAKEAI_RUN TMPDIR XDG_STATE_HOME

# cfi_problem CONFIG RELEASE: why an algorithm may not be registered on this kernel; nothing if it may.
#
# A kernel with control-flow integrity (kCFI) panics where it calls a function without a type hash. On arm64 BPF
# programs that the kernel calls through a struct have one only since Linux 6.18 ("arm64/cfi,bpf: Support kCFI + BPF on
# arm64"). CONFIG is the kernel's configuration, compressed.
cfi_problem() {
  [ -e "$1" ] || return 0
  zcat "$1" | grep -qE '^CONFIG_CFI(_CLANG)?=y' || return 0
  if zcat "$1" | grep -q '^CONFIG_CFI_PERMISSIVE=y'; then return 0; fi
  major=${2%%.*}
  minor=${2#*.}
  minor=${minor%%[!0-9]*}
  if [ "$major" -gt 6 ] || { [ "$major" -eq 6 ] && [ "$minor" -ge 18 ]; }; then return 0; fi
  echo "Linux $2 with control-flow integrity may panic when it calls a congestion control in BPF, which Linux has" \
    "supported on arm64 since 6.18. If this vendor's kernel supports it, create $DATA/allow-cfi"
}
