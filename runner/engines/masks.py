"""What of the kernel's own accounts a container does not get to see.

``/proc`` and ``/sys`` show the whole machine, not of one container: locks that others hold, how many
files are open, how much was read and written. Whoever can make such a number move can send with it, to a
neighbour or to a later run. Setting these lists replaces the engine's own, so its defaults are among them.

Not masked, because common software (Java, psutil, PyTorch) does not start or misjudges its memory without:
``/proc/meminfo``, ``/proc/cpuinfo``, ``/proc/cgroups``, ``/proc/stat``, ``/proc/uptime``, ``/sys/devices/system``.
"""

from __future__ import annotations

ENGINES_OWN = (
    "/proc/acpi /proc/asound /proc/kcore /proc/keys /proc/latency_stats /proc/sched_debug /proc/scsi "
    "/proc/timer_list /proc/timer_stats /sys/devices/virtual/powercap /sys/firmware"
)
COUNTERS = (
    "/proc/buddyinfo /proc/diskstats /proc/interrupts /proc/key-users /proc/loadavg /proc/locks /proc/mdstat "
    "/proc/pagetypeinfo /proc/partitions /proc/pressure /proc/schedstat /proc/slabinfo /proc/softirqs /proc/swaps "
    "/proc/vmallocinfo /proc/vmstat /proc/zoneinfo /proc/sys/fs/aio-nr /proc/sys/fs/dentry-negative "
    "/proc/sys/fs/dentry-state /proc/sys/fs/file-nr /proc/sys/fs/inode-nr /proc/sys/fs/inode-state "
    "/proc/fs /proc/irq /proc/sys/fs/quota /proc/sys/kernel/pty /sys/devices/virtual/bdi /sys/kernel"
)
THE_MACHINE = (
    "/proc/cmdline /proc/config.gz /proc/consoles /proc/driver /proc/fb /proc/iomem /proc/ioports /proc/kallsyms "
    "/proc/kmsg /proc/kpagecgroup /proc/kpagecount /proc/kpageflags /proc/modules /proc/mtrr "
    "/proc/sys/kernel/random/boot_id /proc/tty /sys/power"
)
DISKS = (
    "/sys/block /sys/class/block /sys/dev/block /sys/devices/virtual/block /sys/fs/bcachefs /sys/fs/bpf /sys/fs/btrfs "
    "/sys/fs/erofs /sys/fs/ext4 /sys/fs/f2fs /sys/fs/fuse /sys/fs/nfs /sys/fs/pstore /sys/fs/selinux /sys/fs/xfs "
    "/sys/fs/zfs"
)
# Real devices, disks among them; the driver of a GPU looks for its own here.
DEVICES = "/sys/bus /sys/devices/pci0000:00 /sys/devices/platform /sys/module"
# One file a memory node; on machines with more nodes than this the others stay visible.
NODES = " ".join(
    f"/sys/devices/system/node/node{n}/{name}" for n in range(8) for name in ("numastat", "vmstat")
)
# Counters of each processor; on machines with more processors the others stay visible.
PROCESSORS = " ".join(
    path
    for n in range(64)
    for path in (
        f"/sys/devices/system/cpu/cpu{n}/cpuidle",
        f"/sys/devices/system/cpu/cpu{n}/thermal_throttle",
        f"/sys/devices/system/cpu/cpufreq/policy{n}/stats",
    )
)
GPU_DRIVER = "/proc/driver"

READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")


def masked(gpus: int = 0) -> list[str]:
    """The paths to hide, sorted; with GPUs, what their driver needs is left."""
    groups = [ENGINES_OWN, COUNTERS, THE_MACHINE, DISKS, NODES, PROCESSORS]
    if not gpus:
        groups.append(DEVICES)
    return sorted(path for group in groups for path in group.split() if not (gpus and path == GPU_DRIVER))
